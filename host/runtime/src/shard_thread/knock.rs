//! Clients that have not logged in.

use super::ShardThread;
use crate::access::random_bytes;
use crate::conn::ClientConn;
use crate::login::{self, Gate, Verdict, Way};
use crate::mailbox::Seat;
use mio::net::TcpStream;
use node::{ConnId, Input};
use scram::NONCE_BYTES;
use std::time::{Duration, Instant};
use wire::ClientMessage;

/// How long a client may take to log in, as PostgreSQL's `authentication_timeout`.
const LOGIN_MAX: Duration = Duration::from_secs(60);

impl ShardThread {
    /// A client has connected.
    pub(super) fn add_client(&mut self, mut stream: TcpStream, seat: Seat) {
        if let Some(token) = self.register(&mut stream) {
            let link = seat.link(&stream);
            self.open_gate(token, stream);
            self.seats.insert(token, seat);
            let secret = self.start.secrets.next_u64() as i32;
            self.step(Input::Connect {
                conn: ConnId(token as u32),
                secret,
                link: Box::new(link),
            });
            self.on_other(token, false);
        }
    }

    fn open_gate(&mut self, token: usize, stream: TcpStream) {
        let mut client = ClientConn::new(stream);
        if self
            .start
            .access
            .as_ref()
            .is_some_and(|access| access.tls.is_some())
        {
            client.decoder.offer_tls();
        }
        self.clients.insert(token, client);
        self.knocking.push_back((Instant::now() + LOGIN_MAX, token));
    }

    /// Ends connections that take too long to log in.
    pub(super) fn end_late_logins(&mut self) {
        while let Some((until, token)) = self.knocking.front().copied() {
            let waits = |client: &ClientConn| client.gate.is_some();
            let waits = self.clients.get(&token).is_some_and(waits);
            if waits && until > Instant::now() {
                return;
            }
            self.knocking.pop_front();
            if waits {
                tracing::info!(
                    "a client has not logged in within {} s",
                    LOGIN_MAX.as_secs()
                );
                self.remove_client(token);
            }
        }
    }

    pub(super) fn start_tls(&mut self, token: usize) {
        let config = self
            .start
            .access
            .as_ref()
            .and_then(|access| access.tls.clone());
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        if !config.is_some_and(|config| client.start_tls(config)) {
            tracing::warn!("bytes that are not encrypted behind a request for TLS");
            client.closing = true;
        }
    }

    /// A message of a client that has not logged in.
    pub(super) fn knock(&mut self, token: usize, message: ClientMessage) {
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        let verdict = match client.gate.as_deref() {
            Some(Gate::Closed) => {
                let address = client.stream.peer_addr().ok().map(|address| address.ip());
                let way = Way {
                    encrypted: client.is_encrypted(),
                    from: address.as_ref(),
                };
                let nonce = || random_bytes::<NONCE_BYTES>().ok();
                login::on_startup(self.start.access.as_mut(), way, message, nonce)
            }
            _ if message == ClientMessage::Terminate => {
                client.closing = true;
                return;
            }
            _ => Verdict::Refuse(login::unexpected()),
        };
        self.carry_out_verdict(token, verdict);
    }

    /// A message with which a client logs in.
    pub(super) fn on_password(&mut self, token: usize, body: &[u8]) {
        let client = self.clients.get_mut(&token);
        let gate = client.and_then(|client| client.gate.take());
        let gate = gate.map_or(Gate::Closed, |gate| *gate);
        let verdict = login::on_password(gate, body);
        self.carry_out_verdict(token, verdict);
    }

    fn carry_out_verdict(&mut self, token: usize, verdict: Verdict) {
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        match verdict {
            Verdict::Ask(gate, bytes) => {
                client.gate = Some(Box::new(gate));
                client.raw(&bytes);
            }
            Verdict::Enter(bytes, message) => {
                client.gate = None;
                client.raw(&bytes);
                if !bytes.is_empty() {
                    let from = client.stream.peer_addr().ok().map(|from| from.to_string());
                    tracing::info!(from, role = login::role_of(&message), "login");
                }
                let conn = ConnId(token as u32);
                self.step(Input::Client { conn, message });
            }
            Verdict::Refuse(error) => {
                let from = client.stream.peer_addr().ok();
                let from = from.map(|address| address.to_string());
                tracing::warn!(from, error = %error.fields().message, "login refused");
                client.refuse(error);
            }
        }
    }
}
