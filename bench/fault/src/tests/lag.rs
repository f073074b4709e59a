//! Packets of a server that come late.

use super::*;

#[test]
fn packets_of_open_connections_and_datagrams_come_late() {
    let folder = Folder::new();
    let (dummy, _) = server(&folder.0);
    let target = dummy.target("");
    let port: u16 = std::fs::read_to_string(folder.0.join("port"))
        .unwrap()
        .parse()
        .unwrap();
    let plan = "lag=80ms@dummy:0.3+1.2";
    if !possible(plan, &target, is_root() && has_filter() && has_tables()) {
        return;
    }
    // As two nodes do: one port for both.
    let datagrams = std::net::UdpSocket::bind(("127.0.0.1", port)).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut open = TcpStream::connect(("127.0.0.1", port)).unwrap();
    open.set_nodelay(true).unwrap();
    // There and back; there.
    let least = [Duration::from_millis(160), Duration::from_millis(80)];
    let look = |now_s: f64, took: &mut [Duration; 2]| {
        if !(0.6..1.1).contains(&now_s) {
            return;
        }
        let asked = Instant::now();
        sender.send_to(&[7], ("127.0.0.1", port)).unwrap();
        open.write_all(&[7]).unwrap();
        open.read_exact(&mut [0]).unwrap();
        took[0] = took[0].max(asked.elapsed());
        // It was sent before the byte, and came before the answer.
        assert_eq!(datagrams.recv(&mut [0; 8]).unwrap(), 1);
        let asked = Instant::now();
        sender.send_to(&[7], ("127.0.0.1", port)).unwrap();
        while datagrams.recv(&mut [0; 8]).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        took[1] = took[1].max(asked.elapsed());
    };
    let are_late = |took: &[Duration; 2]| took[0] >= least[0] && took[1] >= least[1];
    let (fault, _) = one(plan, &target, look, are_late);
    assert!(fault.proof.contains("packets were held for 8"), "{fault:?}");
    wait_until("it is undone", || {
        let asked = Instant::now();
        open.write_all(&[7]).unwrap();
        open.read_exact(&mut [0]).unwrap();
        asked.elapsed() < least[1]
    });
}

#[test]
fn packets_that_go_with_the_table_of_another_fault_end_nothing() {
    let folder = Folder::new();
    let (dummy, _) = server(&folder.0);
    let target = dummy.target("");
    let port: u16 = std::fs::read_to_string(folder.0.join("port"))
        .unwrap()
        .parse()
        .unwrap();
    let plan = "lag=80ms@dummy:0.3+2.5";
    if !possible(plan, &target, is_root() && has_filter() && has_tables()) {
        return;
    }
    let other = Deed::Drop(Ways::In, 1.0);
    let other = network::Table::plan("trellis_fault_gone".into(), &dummy.process(), other).unwrap();
    let mut open = TcpStream::connect(("127.0.0.1", port)).unwrap();
    open.set_nodelay(true).unwrap();
    let look = |now_s: f64, took: &mut Vec<Duration>| {
        if !(0.6..1.8).contains(&now_s) || took.len() > 1 {
            return;
        }
        let asked = Instant::now();
        open.write_all(&[7]).unwrap();
        if took.is_empty() {
            other.add().unwrap();
            network::remove(&other.name, None).unwrap();
        }
        open.read_exact(&mut [0]).unwrap();
        took.push(asked.elapsed());
    };
    // The first one is lost with the chains and sent again; the second one is held as before.
    let late = Duration::from_millis(160);
    one(plan, &target, look, |took| {
        took.len() == 2 && took[1] >= late
    });
}
