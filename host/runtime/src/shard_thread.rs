//! The event loop of one shard.

mod incoming;
mod knock;
mod reading;

use crate::access::Access;
use crate::audit_log::AuditLog;
use crate::checkpoint::CheckpointNews;
use crate::clock_watch::{ClockNews, ClockWatch};
use crate::conn::{ClientConn, Got, READ_BYTES};
use crate::credentials::Credentials;
use crate::decoding::Decoder;
use crate::ears::{self, Ears};
use crate::frame::Hello;
use crate::gauges::{Gauges, Told};
use crate::journal_file::Journal;
use crate::knocking::Knocking;
use crate::linger::Lingerers;
use crate::mailbox::{Inbox, Mail, Mailboxes, Seat};
use crate::peer_in::PeerIn;
use crate::peers::{Met, PeerNews, PeerOut};
use crate::preparing::Preparer;
use crate::slow_log::SlowLog;
use base::steady::SteadyClock;
use base::{Position, ShardId, Time};
use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use nix::time::{ClockId, clock_gettime};
use node::{ConnId, Effects, Input, Message, RareEffects, Shard};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use txn::contract::Outgoing;

pub(crate) const WAKER: Token = Token(0);
const SQL_LISTENER: Token = Token(1);
const PEER_LISTENER: Token = Token(2);
/// Outgoing peer connections follow from here, then everything else.
const FIRST_PEER_OUT: usize = 16;
const FIRST_OTHER: usize = 128;
/// Longest sleep: a lost wake-up costs this much, not a hang.
const SLEEP_MAX: Duration = Duration::from_millis(500);
/// Reads of one client's socket before others get their turn.
const READS_MAX: usize = 4;
/// How often a shard checks its invariants.
const VALIDATE_EVERY_US: u64 = 10_000_000;
/// Inputs taken from the mailbox before the sockets are looked at again.
const MAIL_BATCH: usize = 1024;

/// What a shard thread is started with.
pub(crate) struct ShardStart {
    pub(crate) shard: Shard,
    pub(crate) id: ShardId,
    pub(crate) hello: Hello,
    pub(crate) poll: Poll,
    pub(crate) inbox: Inbox,
    pub(crate) mailboxes: Mailboxes,
    pub(crate) journal: Journal,
    pub(crate) peers: Vec<PeerOut>,
    /// First shard only.
    pub(crate) listeners: Option<Listeners>,
    pub(crate) checkpoints: Sender<CheckpointNews>,
    /// Bits for the secrets of cancel requests.
    pub(crate) secrets: base::Prng,
    /// Which lives of other nodes were met.
    pub(crate) met: Met,
    /// Decodes long programs of messages of other nodes.
    pub(crate) decoder: Decoder,
    /// Client connections that the node takes.
    pub(crate) connections_max: u32,
    /// How many of them are taken.
    pub(crate) seats_taken: Arc<AtomicU32>,
    /// Its sessions by role and database.
    pub(crate) seats: node::Seats,
    /// Logins and changes are written there.
    pub(crate) audit: Option<AuditLog>,
    /// Statements that take this long are logged; `None`: as sessions say.
    pub(crate) log_min_us: Option<u64>,
    /// Who may log in; `None`: everybody on this machine.
    pub(crate) access: Option<Access>,
    /// What this node shows to others, and whom it believes; `None`: all of them.
    pub(crate) credentials: Option<Arc<Credentials>>,
}

/// Where the first shard accepts connections.
pub(crate) struct Listeners {
    pub(crate) sql: TcpListener,
    /// Of nodes, if they have no certificates to show; see [`crate::door`].
    pub(crate) peer: Option<TcpListener>,
}

impl Listeners {
    pub(crate) fn new(sql: TcpListener, peer: Option<TcpListener>) -> Listeners {
        Listeners { sql, peer }
    }
}

pub(crate) struct ShardThread {
    start: ShardStart,
    effects: Effects,
    ears: Rc<Ears>,
    preparer: Preparer,
    slow_log: SlowLog,
    gauges: Rc<Gauges>,
    clients: BTreeMap<usize, ClientConn>,
    lingerers: Lingerers,
    /// Clients that have not logged in.
    knocking: Knocking,
    /// First shard only: clients wait to be accepted.
    accepts_later: bool,
    /// Places of the clients among the connections of the node.
    seats: BTreeMap<usize, Seat>,
    peers_in: BTreeMap<usize, PeerIn>,
    next_token: usize,
    /// Round robin over shards for accepted connections.
    next_shard: usize,
    dirty: Vec<usize>,
    /// Clients that are not read for the time being.
    paused: Vec<usize>,
    /// Clients with replies that wait for the journal.
    holding: Vec<usize>,
    /// Messages that wait for the journal, per receiver in order.
    held: BTreeMap<ShardId, VecDeque<Outgoing<Message>>>,
    durable: Position,
    buffer: Vec<u8>,
    /// The first shard knows that this one serves clients.
    ready: bool,
    /// First shard only: how many shards serve clients.
    shards_ready: usize,
    stopping: bool,
    clock: SteadyClock,
    clock_watch: ClockWatch,
    /// When the machine wants its next tick; `None`: it is to be asked, since it has made a step.
    tick_at: Option<Option<Time>>,
    /// What the wall clock showed at the last turn; since then the other clock has the say.
    wall: Time,
    /// When the machine is looked at next.
    validate_at: Time,
}

/// Runs a shard until it is told to stop.
pub(crate) fn run(mut start: ShardStart) {
    let durable = start.journal.durable();
    let preparer = Preparer::start(start.id, start.mailboxes.clone());
    let common =
        (start.id.index() == 0).then(|| (start.journal.clone(), start.decoder.work.clone()));
    let gauges = Gauges::new(start.inbox.arrivals.clone(), preparer.work.clone(), common);
    start.shard.set_host(Box::new(Told(gauges.clone())));
    let knocking = Knocking::new(start.connections_max, start.mailboxes.len());
    let receiver = start.inbox.receiver.take();
    let receiver = receiver.expect("a mailbox is opened once");
    let ears = ears::listen(receiver, start.mailboxes.clone());
    let mut thread = ShardThread {
        start,
        ears,
        preparer,
        slow_log: SlowLog::new(),
        gauges,
        effects: Effects::default(),
        clients: BTreeMap::new(),
        lingerers: Lingerers::default(),
        knocking,
        accepts_later: false,
        seats: BTreeMap::new(),
        peers_in: BTreeMap::new(),
        next_token: FIRST_OTHER,
        next_shard: 0,
        dirty: Vec::new(),
        paused: Vec::new(),
        holding: Vec::new(),
        held: BTreeMap::new(),
        durable,
        buffer: vec![0; READ_BYTES],
        ready: false,
        shards_ready: 0,
        stopping: false,
        clock: SteadyClock::default(),
        clock_watch: ClockWatch::default(),
        tick_at: None,
        wall: wall(),
        validate_at: Time(0),
    };
    thread.listen_to_peers();
    thread.step(Input::Tick);
    let mut events = Events::with_capacity(1024);
    while !thread.stopping {
        thread.turn(&mut events);
    }
    thread.shut_down();
}

fn wall() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Time(since.map_or(0, |elapsed| elapsed.as_micros() as u64))
}

/// Microseconds since the machine began: what no one sets. Read nine times in a point statement,
/// so it comes without the checks and sums of `Instant`.
pub(crate) fn monotonic_us() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the system has a monotonic clock");
    time.tv_sec() as u64 * 1_000_000 + time.tv_nsec() as u64 / 1_000
}

impl ShardThread {
    /// The time for the machine: a wall clock that is set back does not stop it.
    fn now(&mut self) -> Time {
        self.clock.read(monotonic_us(), self.wall)
    }

    /// Looks at times whether the machine is in order; a shard that is not ends the process.
    fn validate(&mut self, now: Time) {
        if now >= self.validate_at {
            self.validate_at = now.after(VALIDATE_EVERY_US);
            self.start.shard.validate_open();
            self.tick_at = None;
            self.watch_clock();
            self.gauges.turn();
            self.end_late_greetings();
            self.slow_log.tend();
            self.knocking.tend();
        }
    }

    /// Says when the wall clock was set back.
    fn watch_clock(&mut self) {
        // The shards of a node read the same clocks: one of them speaks.
        if self.start.id.index() == 0 {
            match self.clock_watch.look(self.clock.ahead_us(self.wall)) {
                Some(ClockNews::Ahead(micros)) => tracing::warn!(
                    seconds = micros / 1_000_000,
                    "the clock was set back: now() goes on from where it was and is ahead until \
                     the clock has caught up"
                ),
                Some(ClockNews::CaughtUp) => tracing::warn!("the clock has caught up with now()"),
                None => {}
            }
        }
    }

    fn listen_to_peers(&mut self) {
        let listeners = self.start.listeners.as_mut();
        if let Some(peer) = listeners.and_then(|listeners| listeners.peer.as_mut()) {
            let registry = self.start.poll.registry();
            let result = registry.register(peer, PEER_LISTENER, Interest::READABLE);
            result.expect("a listener can be polled");
        }
    }

    /// Clients are accepted when all shards serve them: on a new node the shards learn the catalog
    /// one after the other. Until then connections wait in the listener's queue.
    fn listen_to_clients(&mut self) {
        let listeners = self.start.listeners.as_mut();
        let sql = &mut listeners.expect("the first shard has the listeners").sql;
        self.ears.open(sql);
        let result = self
            .start
            .poll
            .registry()
            .register(sql, SQL_LISTENER, Interest::READABLE);
        result.expect("a listener can be polled");
    }

    fn tell_ready(&mut self) {
        if !self.ready && self.start.shard.is_accepting() {
            self.ready = true;
            self.start.mailboxes.send(0, Mail::Ready);
        }
    }

    /// One turn of the loop: sleep, take events and mail, let the machine work, send.
    fn turn(&mut self, events: &mut Events) {
        let timeout = self.timeout();
        if let Err(error) = self.start.poll.poll(events, Some(timeout)) {
            assert_eq!(
                error.kind(),
                std::io::ErrorKind::Interrupted,
                "poll: {error}"
            );
        }
        self.start.inbox.asleep.store(false, Ordering::SeqCst);
        self.wall = wall();
        for event in events.iter() {
            match event.token() {
                WAKER => {}
                SQL_LISTENER => self.accept_clients(),
                PEER_LISTENER => self.accept_peers(),
                Token(token) if token < FIRST_OTHER => {
                    self.on_peer_out(token - FIRST_PEER_OUT, is_ending(event));
                }
                Token(token) => self.on_other(token, is_ending(event)),
            }
        }
        self.resume_clients();
        self.place_accepted();
        self.accept_later();
        self.take_mail();
        self.take_durable();
        let now = self.now();
        self.connect_peers(now);
        if self.deadline().is_some_and(|at| at <= now) {
            self.step(Input::Tick);
        }
        self.tell_ready();
        self.flush();
        self.lingerers.tend(&mut self.buffer);
        self.end_late_logins();
        self.validate(now);
    }

    /// When the machine wants its next tick.
    fn deadline(&mut self) -> Option<Time> {
        *(self.tick_at).get_or_insert_with(|| self.start.shard.deadline())
    }

    /// How long the loop may sleep; announces that it is about to.
    fn timeout(&mut self) -> Duration {
        let now = self.now();
        let peers = self.start.peers.iter().filter_map(PeerOut::deadline).min();
        let deadline = self.deadline().into_iter().chain(peers).min();
        let timeout = match deadline {
            Some(at) => Duration::from_micros(at.since(now)).min(SLEEP_MAX),
            None => SLEEP_MAX,
        };
        self.start.inbox.asleep.store(true, Ordering::SeqCst);
        // Mail that came before `asleep` was set would not wake the poll.
        let behind = self.start.journal.durable() > self.durable && self.is_holding();
        let (outside, resumable) = self.outside();
        let timeout = outside.map_or(timeout, |pause| timeout.min(pause));
        let due = behind || resumable || !self.dirty.is_empty() || self.ears.has_clients();
        if due || self.lingerers.is_busy() || self.take_one_mail() {
            Duration::ZERO
        } else {
            timeout
        }
    }

    /// Clients whose answers wait for the journal, and messages that do.
    fn held_count(&self) -> u64 {
        let messages = match self.held.is_empty() {
            true => 0,
            false => self.held.values().map(VecDeque::len).sum::<usize>(),
        };
        (self.holding.len() + messages) as u64
    }

    fn is_holding(&self) -> bool {
        !self.holding.is_empty() || !self.held.is_empty() || self.start.shard.awaits_durable()
    }

    fn step(&mut self, input: Input) {
        let now = self.now();
        self.start.shard.step(now, input, &mut self.effects);
        self.tick_at = None;
        self.carry_out();
    }

    fn take_one_mail(&mut self) -> bool {
        match self.ears.next_mail() {
            Some(mail) => {
                self.gauges.took_mail();
                self.on_mail(mail);
                true
            }
            None => false,
        }
    }

    fn take_mail(&mut self) {
        for _ in 0..MAIL_BATCH {
            if !self.take_one_mail() {
                return;
            }
        }
    }

    fn on_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Message(from, message) | Mail::FromPeer(from, message) => {
                self.step(Input::Message { from, message });
            }
            Mail::Prepared(result) => self.step(Input::Prepared(result)),
            Mail::Client(stream, seat) => self.add_client(stream, seat),
            Mail::Peer(stream, proved) => self.add_peer(stream, proved),
            Mail::Credentials(credentials) => self.on_credentials(credentials),
            Mail::Decoded(message) => self.on_decoded(*message),
            Mail::DiskFull(full) => self.step(Input::DiskFull(full)),
            Mail::GiveBack(give_back) => give_back(),
            Mail::Memory(memory) => self.step(Input::Memory(memory)),
            Mail::Checkpoint(number) => self.step(Input::Checkpoint { number }),
            Mail::CheckpointPiece(bytes) => self.step(Input::CheckpointPiece { bytes }),
            Mail::Ready => {
                self.shards_ready += 1;
                if self.shards_ready == self.start.mailboxes.len() {
                    self.listen_to_clients();
                }
            }
            Mail::Report(answer) => {
                let index = usize::from(self.start.id.index());
                // There is room for an answer of each shard; who asked may have gone.
                let _ = answer.try_send((index, Box::new(self.start.shard.report())));
            }
            Mail::Silent(node) => self.on_silent(node),
            Mail::Heard(node) => self.on_heard(node),
            Mail::Drain => self.step(Input::Drain),
            Mail::Stop => self.stopping = true,
        }
    }

    /// Does what the machine asked for.
    fn carry_out(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        let mut wanted = self.start.shard.awaits_durable();
        for (conn, reply, wait) in effects.replies.drain(..) {
            let token = conn.0 as usize;
            let Some(client) = self.clients.get_mut(&token) else {
                continue;
            };
            let was_holding = client.is_holding();
            let holds = client.reply(reply, wait, self.durable);
            wanted |= holds;
            if holds && !was_holding {
                self.holding.push(token);
            }
            mark_dirty(client, token, &mut self.dirty);
        }
        // Most steps have none, and draining nothing costs as much as looking ten times.
        if !effects.messages.is_empty() {
            for outgoing in effects.messages.drain(..) {
                wanted |= self.send_or_hold(outgoing);
            }
        }
        if let Some(rare) = effects.rare.take() {
            self.carry_out_rare(*rare);
        }
        // Give the buffers back.
        self.effects = effects;
        if wanted {
            self.gauges.hold.set(self.held_count());
            self.start.inbox.waiting.store(true, Ordering::Release);
            self.start.journal.flush_soon();
        }
    }

    fn carry_out_rare(&mut self, rare: RareEffects) {
        if !rare.slow.is_empty() {
            self.slow_log.write(rare.slow);
        }
        if let Some(audit) = &self.start.audit {
            audit.write(&rare.audited);
        }
        for preparation in rare.preparations {
            self.preparer.give(preparation);
        }
        for part in rare.checkpoint {
            // The checkpointer ends only after the shards.
            let _ = (self.start.checkpoints).send(CheckpointNews::of(part, self.start.id));
        }
        if rare.drained {
            let _ = self.start.checkpoints.send(CheckpointNews::Drained);
        }
    }

    /// Whether it is held.
    fn send_or_hold(&mut self, outgoing: Outgoing<Message>) -> bool {
        if outgoing.wait > self.durable || self.held.contains_key(&outgoing.to) {
            self.held
                .entry(outgoing.to)
                .or_default()
                .push_back(outgoing);
            return true;
        }
        self.send(outgoing);
        false
    }

    fn send(&mut self, outgoing: Outgoing<Message>) {
        let Outgoing { to, message, .. } = outgoing;
        if to.node() == self.start.id.node() {
            let mail = Mail::Message(self.start.id, message);
            self.start.mailboxes.send(usize::from(to.index()), mail);
            return;
        }
        let Message::Wire(message) = message else {
            panic!("a local message is addressed to another node")
        };
        let peer = self
            .start
            .peers
            .iter_mut()
            .find(|peer| peer.node == to.node());
        let peer = peer.expect("messages go to nodes of the cluster file");
        let bytes = peer.send(self.start.id, to, &message);
        self.gauges.link.count(1);
        self.start.shard.note_sent(bytes as u64);
    }

    /// Lets go what the journal has caught up with.
    fn take_durable(&mut self) {
        let durable = self.start.journal.durable();
        if durable == self.durable {
            return;
        }
        self.durable = durable;
        self.gauges.hold.note(self.held_count());
        self.step(Input::Durable(durable));
        let mut released = 0;
        for token in std::mem::take(&mut self.holding) {
            let Some(client) = self.clients.get_mut(&token) else {
                continue;
            };
            match client.release(durable) {
                true => self.holding.push(token),
                false => released += 1,
            }
            mark_dirty(client, token, &mut self.dirty);
        }
        let receivers: Vec<ShardId> = self.held.keys().copied().collect();
        for to in receivers {
            let mut queue = self.held.remove(&to).expect("just listed");
            while queue
                .front()
                .is_some_and(|outgoing| outgoing.wait <= durable)
            {
                let outgoing = queue.pop_front().expect("just seen");
                self.send(outgoing);
                released += 1;
            }
            if !queue.is_empty() {
                self.held.insert(to, queue);
            }
        }
        self.gauges.hold.set(self.held_count());
        self.gauges.hold.count(released);
        self.start
            .inbox
            .waiting
            .store(self.is_holding(), Ordering::Release);
        if self.is_holding() {
            self.start.journal.flush_soon();
        }
    }

    fn register(&mut self, stream: &mut TcpStream) -> Option<usize> {
        let token = self.next_token;
        self.next_token += 1;
        let _ = stream.set_nodelay(true);
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self
            .start
            .poll
            .registry()
            .register(stream, Token(token), interest)
        {
            Ok(()) => Some(token),
            Err(error) => {
                tracing::error!(%error, "cannot poll a connection");
                None
            }
        }
    }

    /// A connection has news. `ending`: the other side has closed, see [`is_ending`].
    fn on_other(&mut self, token: usize, ending: bool) {
        if self.clients.contains_key(&token) {
            self.on_client(token, ending);
        } else if self.peers_in.contains_key(&token) {
            self.on_peer_in(token, ending);
        } else {
            self.lingerers.on_event(token);
        }
    }

    /// A client's socket can be read or written.
    fn on_client(&mut self, token: usize, ending: bool) {
        let client = self.clients.get_mut(&token).expect("the caller has looked");
        client.ending |= ending;
        mark_dirty(client, token, &mut self.dirty);
        if !client.paused {
            match client.gate.is_some() {
                true => self.read_outside(token),
                false => self.read_client(token),
            }
        }
    }

    /// Reads a client's socket and hands its messages to the machine, until the socket is empty or
    /// the client has sent enough for now.
    fn read_client(&mut self, token: usize) {
        for _ in 0..READS_MAX {
            let client = self.clients.get_mut(&token).expect("the caller has looked");
            let got = client.read(&mut self.buffer);
            self.decode(token);
            let Some(client) = self.clients.get(&token) else {
                return;
            };
            match got {
                Got::End => return drop(self.remove_client(token)),
                _ if client.paused => return,
                Got::Bytes(more) if more || client.ending => {}
                Got::Nothing | Got::Bytes(_) => return,
            }
        }
        self.pause(token);
    }

    fn remove_client(&mut self, token: usize) -> Option<ClientConn> {
        self.seats.remove(&token);
        self.start.mailboxes.forget_secret(self.pid_of(token));
        let client = self.clients.remove(&token)?;
        self.step(Input::Disconnected {
            conn: ConnId(token as u32),
        });
        Some(client)
    }

    fn connect_peers(&mut self, now: Time) {
        for index in 0..self.start.peers.len() {
            let news = self.start.peers[index].tend(now);
            self.on_peer_news(index, news);
        }
        let registry = self.start.poll.registry();
        let own = self.start.credentials.as_deref();
        for (index, peer) in self.start.peers.iter_mut().enumerate() {
            if let Some(stream) = peer.connect(now, &self.start.hello, own) {
                let _ = stream.set_nodelay(true);
                let token = Token(FIRST_PEER_OUT + index);
                let interest = Interest::READABLE | Interest::WRITABLE;
                registry
                    .register(stream, token, interest)
                    .expect("a new socket can be polled");
            }
        }
    }

    fn on_peer_out(&mut self, index: usize, ending: bool) {
        let now = self.now();
        let buffer = &mut self.buffer;
        let news = self.start.peers[index].on_event(now, &self.start.hello, ending, buffer);
        self.on_peer_news(index, news);
    }

    fn on_peer_news(&mut self, index: usize, news: PeerNews) {
        let node = self.start.peers[index].node;
        match news {
            PeerNews::Nothing | PeerNews::Down(false) => {}
            PeerNews::Up(incarnation) => {
                tracing::info!(node = node.0, incarnation, "connected");
                self.step(Input::PeerUp { node, incarnation });
            }
            PeerNews::Down(true) => {
                tracing::info!(node = node.0, "connection lost");
                self.step(Input::PeerDown { node });
            }
        }
    }

    /// One write per socket that has something to say.
    fn flush(&mut self) {
        // A client that reads as fast as rows come is dirty again at once, and must wait for its
        // next turn: timers and others come first.
        let mut dirty = std::mem::take(&mut self.dirty);
        for token in dirty.drain(..) {
            let Some(client) = self.clients.get_mut(&token) else {
                continue;
            };
            client.dirty = false;
            match client.flush() {
                Ok(false) => {}
                Ok(true) => self.step(Input::Drained {
                    conn: ConnId(token as u32),
                }),
                Err(_) => {
                    self.remove_client(token);
                    continue;
                }
            }
            let Some(client) = self.clients.get(&token) else {
                continue;
            };
            if client.closing
                && client.is_flushed()
                && let Some(client) = self.remove_client(token)
                && !client.ending
            {
                self.lingerers.add(token, client.stream);
            }
        }
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
        let mut had_output = false;
        for index in 0..self.start.peers.len() {
            let peer = &mut self.start.peers[index];
            had_output |= peer.has_output();
            if peer.has_output() && peer.flush().is_err() {
                let now = self.now();
                let news = self.start.peers[index].on_broken(now);
                self.on_peer_news(index, news);
            }
        }
        if had_output {
            let unsent = self.start.peers.iter().map(PeerOut::unsent_bytes);
            self.gauges.link.note(unsent.sum());
        }
    }

    /// Says goodbye to clients; what they were told before is already sent.
    fn shut_down(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        self.start.shard.shut_down(&mut effects);
        self.effects = effects;
        self.carry_out();
        self.flush();
    }
}

/// Whether the other side has closed. What it sent before may still be unread, and behind that lies
/// the end, which raises no event of its own: such a connection is read until its end is seen.
fn is_ending(event: &Event) -> bool {
    event.is_read_closed() || event.is_error()
}

fn mark_dirty(client: &mut ClientConn, token: usize, dirty: &mut Vec<usize>) {
    if !std::mem::replace(&mut client.dirty, true) {
        dirty.push(token);
    }
}

fn accept(listener: Option<&TcpListener>) -> Option<TcpStream> {
    let listener = listener.expect("only the first shard is told of listeners");
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Some(stream),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return None,
            Err(error) => {
                tracing::error!(%error, "cannot accept a connection");
                return None;
            }
        }
    }
}
