//! Clients that have not logged in, and those that are not read for a while.

use super::{ShardThread, accept, mark_dirty};
use crate::access::{Access, random_bytes};
use crate::conn::ClientConn;
use crate::knocking::LOGIN_MAX;
use crate::login::{self, Gate, Known, Verdict, Way};
use crate::mailbox::{Mail, Seat};
use mio::net::TcpStream;
use node::{ConnId, Input};
use scram::NONCE_BYTES;
use std::time::{Duration, Instant};
use wire::ClientMessage;

/// Whether this is a client that has not logged in.
fn waits(client: Option<&ClientConn>) -> bool {
    client.is_some_and(|client| client.gate.is_some())
}

impl ShardThread {
    /// A client has connected.
    pub(super) fn add_client(&mut self, mut stream: TcpStream, seat: Seat) {
        let start = Instant::now();
        if let Some(token) = self.register(&mut stream) {
            let mut link = seat.link(&stream);
            link.log_min_us = self.start.log_min_us;
            link.seats = self.start.seats.clone();
            link.audits = self.start.audit.is_some();
            self.open_gate(token, stream);
            self.seats.insert(token, seat);
            let secret = self.start.secrets.next_u64() as i32;
            self.start.mailboxes.note_secret(self.pid_of(token), secret);
            self.step(Input::Connect {
                conn: ConnId(token as u32),
                secret,
                link: Box::new(link),
            });
            self.knocking.spend(start.elapsed());
            self.on_other(token, false);
        }
    }

    pub(super) fn accept_clients(&mut self) {
        loop {
            // Those that wait in the system's queue cost nothing.
            self.accepts_later = self.knocking.pause(Instant::now()).is_some();
            if self.accepts_later {
                return;
            }
            let start = Instant::now();
            let listener = self
                .start
                .listeners
                .as_ref()
                .map(|listeners| &listeners.sql);
            let Some(stream) = accept(listener) else {
                return;
            };
            self.place(stream, start);
        }
    }

    /// Gives an accepted client to a shard.
    fn place(&mut self, stream: TcpStream, start: Instant) {
        let shard = self.next_shard;
        self.next_shard = (shard + 1) % self.start.mailboxes.len();
        let seat = Seat::take(&self.start.seats_taken, self.start.connections_max);
        self.knocking.spend(start.elapsed());
        if shard == usize::from(self.start.id.index()) {
            self.add_client(stream, seat);
        } else {
            self.start.mailboxes.send(shard, Mail::Client(stream, seat));
        }
    }

    /// Gives clients to shards that were accepted while a function computed.
    pub(super) fn place_accepted(&mut self) {
        while self.ears.has_clients()
            && let Some(stream) = self.ears.next_client()
        {
            self.place(stream, Instant::now());
        }
    }

    /// The number of the session of a connection.
    pub(super) fn pid_of(&self, token: usize) -> i32 {
        node::pid_of(self.start.id, ConnId(token as u32))
    }

    /// Accepts clients that had to wait.
    pub(super) fn accept_later(&mut self) {
        if self.accepts_later {
            self.accept_clients();
        }
    }

    /// How long clients that have not logged in must wait, and whether there is a client that was
    /// paused and may go on, or be accepted.
    pub(super) fn outside(&mut self) -> (Option<Duration>, bool) {
        if self.paused.is_empty() && !self.accepts_later {
            return (None, false);
        }
        let pause = self.knocking.pause(Instant::now());
        let is_held = |token| pause.is_some() && waits(self.clients.get(&token));
        let mut paused = self.paused.iter();
        let resumable = paused.any(|token| !self.is_choked(*token) && !is_held(*token));
        (pause, resumable || (self.accepts_later && pause.is_none()))
    }

    /// Goes on with clients that have caught up.
    pub(super) fn resume_clients(&mut self) {
        for token in std::mem::take(&mut self.paused) {
            if self.is_choked(token) || self.must_wait_outside(token) {
                self.paused.push(token);
                continue;
            }
            let Some(client) = self.clients.get_mut(&token) else {
                continue;
            };
            client.paused = false;
            mark_dirty(client, token, &mut self.dirty);
            let start = client.gate.is_some().then(Instant::now);
            self.decode(token);
            let goes_on = |client: &ClientConn| !client.paused;
            if self.clients.get(&token).is_some_and(goes_on) {
                // The socket raises no event for what was there before.
                self.read_client(token);
            }
            if let Some(start) = start {
                self.knocking.spend(start.elapsed());
            }
        }
    }

    fn open_gate(&mut self, token: usize, stream: TcpStream) {
        let mut client = ClientConn::new(stream);
        if self.start.access.as_ref().is_some_and(Access::encrypts) {
            client.decoder.offer_tls();
        }
        self.clients.insert(token, client);
        let clients = &self.clients;
        let waits = |token| waits(clients.get(&token));
        let gone = self.knocking.add(token, Instant::now(), waits);
        if let Some(gone) = gone {
            self.remove_client(gone);
        }
    }

    /// Ends connections that take too long to log in.
    pub(super) fn end_late_logins(&mut self) {
        let clients = &self.clients;
        let late = self.knocking.late(|token| waits(clients.get(&token)));
        if let Some(token) = late {
            tracing::info!(
                "a client has not logged in within {} s",
                LOGIN_MAX.as_secs()
            );
            self.remove_client(token);
        }
    }

    /// Whether a client has not logged in, and those have had their time for now.
    pub(super) fn must_wait_outside(&mut self, token: usize) -> bool {
        waits(self.clients.get(&token)) && self.knocking.pause(Instant::now()).is_some()
    }

    /// Reads a client that has not logged in.
    pub(super) fn read_outside(&mut self, token: usize) {
        if self.knocking.pause(Instant::now()).is_some() {
            return self.pause(token);
        }
        let start = Instant::now();
        self.read_client(token);
        self.knocking.spend(start.elapsed());
    }

    pub(super) fn start_tls(&mut self, token: usize) {
        let access = self.start.access.as_mut();
        let config = access.and_then(Access::tls);
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
        let known = Known::of(&self.start.shard.catalog(), &message, self.now());
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        let user = login::role_of(&message).to_owned();
        let verdict = match client.gate.as_deref() {
            Some(Gate::Closed) => {
                let address = client.stream.peer_addr().ok().map(|address| address.ip());
                let certified = client.certified();
                let way = Way {
                    encrypted: client.is_encrypted(),
                    certified: certified.as_deref(),
                    from: address.as_ref(),
                };
                let nonce = || random_bytes::<NONCE_BYTES>().ok();
                login::on_startup(self.start.access.as_mut(), way, message, known, nonce)
            }
            _ if message == ClientMessage::Terminate => {
                client.closing = true;
                return;
            }
            _ => Verdict::Refuse(login::unexpected()),
        };
        self.carry_out_verdict(token, verdict, &user);
    }

    /// A message with which a client logs in.
    pub(super) fn on_password(&mut self, token: usize, body: &[u8]) {
        let client = self.clients.get_mut(&token);
        let gate = client.and_then(|client| client.gate.take());
        let gate = gate.map_or(Gate::Closed, |gate| *gate);
        let user = gate.role().to_owned();
        let (catalog, now) = (self.start.shard.catalog(), self.now());
        let known = |startup: &_| Known::of(&catalog, startup, now);
        let verdict = login::on_password(gate, body, known);
        self.carry_out_verdict(token, verdict, &user);
    }

    fn carry_out_verdict(&mut self, token: usize, verdict: Verdict, user: &str) {
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
                if let Some(audit) = &self.start.audit {
                    audit.refused(user, from.as_deref(), &error);
                }
                client.refuse(error);
            }
        }
    }
}
