//! Connections that leave from an address of our own, so that who looks at a link sees both of its
//! nodes: a firewall that parts two of them, a person with a packet dump.

use mio::net::TcpStream;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// EINPROGRESS, for which the library has no kind of its own.
const IN_PROGRESS: i32 = if cfg!(target_os = "linux") { 115 } else { 36 };

/// Begins a connection to `to` from any port of the address `from`; does not wait for it.
///
/// # Errors
/// `from` is no address of this machine, or the connection is refused at once.
pub(crate) fn connect(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    match socket.connect(&to.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(IN_PROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(TcpStream::from_std(socket.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn a_connection_comes_from_the_address_that_was_named() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let from = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
        let stream = connect(from, listener.local_addr().unwrap()).unwrap();
        let (_, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip(), from);
        assert_eq!(stream.local_addr().unwrap(), peer);
    }
}
