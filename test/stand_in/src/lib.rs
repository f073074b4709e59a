//! Negative controls of the benchmark: a database with one planted fault.
//!
//! A [`StandIn`] stands between a client and a real PostgreSQL. It passes on what both say, but
//! for the statements and answers that its [`Fault`] concerns. A check of the benchmark that has
//! never been seen to fail proves nothing; these make each one fail, over the wire, in the way
//! that a faulty database would (docs/benchmark/negative_controls.md).
//!
//! ```text
//! client --round--> rewritten (fault) --> PostgreSQL
//!        <-answers- counted, some swallowed <--
//! ```
//!
//! Invariants:
//! * With [`Fault::Nothing`] every statement and every answer passes as it is.
//! * A fault chooses by counting, never by the clock or by chance.
//! * What a statement answers is what an honest server would have answered.
//!
//! Not here: TLS, and clients that send a round before the one before it is answered.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod fault;
mod message;
mod replica;
mod session;

pub use fault::Fault;

use fault::Plant;
use links::url::{Endpoint, Target};
use replica::Replica;
use session::Session;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A server that does not answer for this long is gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// A database with one fault; its connections end when it is dropped.
#[derive(Debug)]
pub struct StandIn {
    address: SocketAddr,
    account: String,
    database: String,
    shared: Arc<Shared>,
    door: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    plant: Plant,
    upstream: Endpoint,
    is_over: AtomicBool,
    /// Both ends of each connection, and who serves it.
    served: Mutex<Vec<(TcpStream, TcpStream, JoinHandle<()>)>>,
}

impl StandIn {
    /// Stands before the database of this URL, which names one server.
    ///
    /// # Errors
    /// The URL cannot be read, or no port on loopback is free.
    pub fn before(url: &str, fault: Fault) -> io::Result<StandIn> {
        let target = Target::parse(url);
        let target = target.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let shared = Arc::new(Shared {
            upstream: target.endpoints[0].clone(),
            plant: Plant::new(fault, Replica::new(target.clone())),
            is_over: AtomicBool::new(false),
            served: Mutex::default(),
        });
        Ok(StandIn {
            address: listener.local_addr()?,
            account: target.user,
            database: target.database,
            shared: shared.clone(),
            door: Some(std::thread::spawn(move || accept(&listener, &shared))),
        })
    }

    /// Where clients of the benchmark find the database.
    pub fn url(&self) -> String {
        let StandIn {
            address,
            account,
            database,
            ..
        } = self;
        format!("postgres://{account}@{address}/{database}")
    }

    /// How often the fault has done something wrong so far: transactions, or statements of one. 0
    /// with [`Fault::Nothing`].
    pub fn planted(&self) -> u64 {
        self.shared.plant.planted()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for clients; where that fails it is left alone.
        let is_awake = TcpStream::connect(self.address).is_ok();
        if let Some(door) = self.door.take().filter(|_| is_awake) {
            let _ = door.join();
        }
        let served = self.shared.served.lock();
        for (client, server, thread) in served.unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        // A client that cannot be served sees its connection closed.
        let _ = client.and_then(|client| welcome(client, shared));
    }
}

fn welcome(client: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    let server = TcpStream::connect((shared.upstream.host.as_str(), shared.upstream.port))?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    server.set_read_timeout(Some(PATIENCE))?;
    let ends = (client.try_clone()?, server.try_clone()?);
    let own = shared.clone();
    let thread = std::thread::spawn(move || {
        let (to_client, to_server) = (client.try_clone(), server.try_clone());
        // The connection ends, however it ends; the client sees that.
        let _ = Session::new(&own.plant, client, server).serve();
        for stream in [to_client, to_server].into_iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
    let mut served = shared.served.lock().unwrap_or_else(PoisonError::into_inner);
    served.push((ends.0, ends.1, thread));
    Ok(())
}
