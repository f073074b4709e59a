//! A small HTTP server: `GET /metrics`, one request at a time, each with limits.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a request; a longer one is refused.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Time for a request to arrive.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// Time for an answer to be taken.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// A page is handed out again for so long.
const PAGE_TIME: Duration = Duration::from_secs(1);
/// Pause when the system gives no connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests for ever, on the thread of the caller.
pub fn serve(listener: &TcpListener, mut make: impl FnMut() -> String) {
    let mut page: Option<(Instant, String)> = None;
    loop {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(PAUSE);
            continue;
        };
        let fresh = |(at, _): &(Instant, String)| at.elapsed() < PAGE_TIME;
        let mut body = || {
            if !page.as_ref().is_some_and(fresh) {
                page = Some((Instant::now(), make()));
            }
            page.as_ref()
                .map(|(_, text)| text.clone())
                .unwrap_or_default()
        };
        if let Err(error) = answer(stream, &mut body) {
            tracing::debug!(%error, "a request for metrics");
        }
    }
}

fn answer(mut stream: TcpStream, page: &mut dyn FnMut() -> String) -> std::io::Result<()> {
    let request = read_request(&mut stream)?;
    let (status, body) = match judge(&request) {
        Ok(()) => ("200 OK", page()),
        Err(status) => (status, format!("{status}\n")),
    };
    let is_head = request.starts_with(b"HEAD ");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let until = Instant::now() + ANSWER_TIME;
    write_until(&mut stream, head.as_bytes(), until)?;
    if !is_head {
        write_until(&mut stream, body.as_bytes(), until)?;
    }
    stream.shutdown(Shutdown::Write)?;
    // What is unread when a socket is closed takes the answer with it.
    stream.set_read_timeout(Some(PAUSE))?;
    let _ = stream.read(&mut [0; 512]);
    Ok(())
}

/// What is wrong with a request, as a status.
fn judge(request: &[u8]) -> Result<(), &'static str> {
    let line = request.split(|byte| *byte == b'\r').next();
    let line = line.and_then(|line| std::str::from_utf8(line).ok());
    let words: Vec<&str> = line.unwrap_or_default().split(' ').collect();
    match words[..] {
        _ if !request.ends_with(b"\r\n\r\n") => Err("400 Bad Request"),
        [method, target, "HTTP/1.0" | "HTTP/1.1"] => {
            let path = target.split('?').next();
            match (method, path) {
                ("GET" | "HEAD", Some("/metrics")) => Ok(()),
                ("GET" | "HEAD", _) => Err("404 Not Found"),
                _ => Err("405 Method Not Allowed"),
            }
        }
        _ => Err("400 Bad Request"),
    }
}

/// Reads up to the empty line; what comes behind it is of no interest.
fn read_request(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let until = Instant::now() + REQUEST_TIME;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while request.len() < REQUEST_BYTES_MAX {
        stream.set_read_timeout(Some(left(until)?))?;
        let count = match stream.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        };
        if count == 0 {
            break;
        }
        request.extend_from_slice(&buffer[..count]);
        let mut ends = request.windows(4);
        if let Some(end) = ends.position(|four| four == b"\r\n\r\n") {
            request.truncate(end + 4);
            break;
        }
    }
    Ok(request)
}

fn write_until(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> std::io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Time until then; an error if there is none.
fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn start() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut made = 0;
        std::thread::spawn(move || {
            serve(&listener, || {
                made += 1;
                format!("made {made}\n")
            });
        });
        address
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request).expect("it reads");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn one_path_is_answered() {
        let address = start();
        let good = ask(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(good.starts_with("HTTP/1.1 200 OK\r\n"), "{good}");
        assert!(good.ends_with("\r\n\r\nmade 1\n"), "{good}");
        let again = ask(address, b"GET /metrics?a=b HTTP/1.0\r\n\r\n");
        assert!(again.ends_with("made 1\n"), "the same page: {again}");
        let head = ask(address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.ends_with("Connection: close\r\n\r\n"), "{head}");
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"GET /metrics HTTP/2\r\n\r\n", "400"),
            (b"\xff\r\n\r\n", "400"),
            (&[b'x'; REQUEST_BYTES_MAX], "400"),
        ] {
            let answer = ask(address, request);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{answer}"
            );
        }
    }

    #[test]
    fn who_says_nothing_is_let_go() {
        let address = start();
        let silent = TcpStream::connect(address).expect("it listens");
        let start = Instant::now();
        let good = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(good.contains("200 OK"), "{good}");
        assert!(start.elapsed() < 2 * REQUEST_TIME);
        drop(silent);
    }
}
