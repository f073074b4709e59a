//! Polls the workloads' futures. A task runs when what it waits for has happened in the world; it
//! never runs on its own.

use crate::client::{ConnCell, ConnState, SimConn, SimError};
use base::{Prng, Time};
use std::cell::{Cell, RefCell, RefMut};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use wire::ClientMessage;

/// A task of a workload.
pub type Task<T = ()> = Pin<Box<dyn Future<Output = T>>>;

/// Names a task of this run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TaskId(pub(crate) u32);

/// What tasks ask of the world.
pub(crate) enum Request {
    /// Wake the task at this virtual time (nanoseconds).
    Sleep { task: TaskId, at_ns: u64 },
    /// Wake the task when nothing but timers is left, and say so.
    Quiet { task: TaskId, came: Rc<Cell<bool>> },
    /// Open a connection.
    Connect {
        node: u16,
        cell: Rc<ConnCell>,
        startup: ClientMessage,
    },
    /// Messages of a client, in order.
    Send {
        conn: u32,
        messages: Vec<ClientMessage>,
    },
    /// The client is gone.
    Close { conn: u32 },
    /// A cancel request.
    Cancel { node: u16, pid: i32, secret: i32 },
}

/// What tasks and world share.
pub(crate) struct Shared {
    pub(crate) now_ns: Cell<u64>,
    /// Virtual time 0 in microseconds since the Unix epoch.
    pub(crate) epoch_us: u64,
    pub(crate) nodes: u16,
    pub(crate) shards: u16,
    /// Clients are to end.
    pub(crate) stopping: Cell<bool>,
    current: Cell<Option<TaskId>>,
    next_task: Cell<u32>,
    next_conn: Cell<u32>,
    spawned: RefCell<Vec<(TaskId, Task)>>,
    requests: RefCell<VecDeque<Request>>,
    /// Tasks woken by other tasks.
    woken: RefCell<Vec<TaskId>>,
}

impl Shared {
    pub(crate) fn new(epoch_us: u64, nodes: u16, shards: u16) -> Shared {
        Shared {
            now_ns: Cell::new(0),
            epoch_us,
            nodes,
            shards,
            stopping: Cell::new(false),
            current: Cell::new(None),
            next_task: Cell::new(0),
            next_conn: Cell::new(0),
            spawned: RefCell::default(),
            requests: RefCell::default(),
            woken: RefCell::default(),
        }
    }

    pub(crate) fn request(&self, request: Request) {
        self.requests.borrow_mut().push_back(request);
    }

    pub(crate) fn take_request(&self) -> Option<Request> {
        self.requests.borrow_mut().pop_front()
    }

    /// The task that is being polled.
    pub(crate) fn current(&self) -> TaskId {
        self.current
            .get()
            .expect("a future of a workload is polled by the simulator")
    }

    fn spawn(&self, task: Task) -> TaskId {
        let id = TaskId(self.next_task.get());
        self.next_task.set(id.0 + 1);
        self.spawned.borrow_mut().push((id, task));
        id
    }
}

/// A task's handle of the world.
#[derive(Clone)]
pub struct SimCx {
    shared: Rc<Shared>,
    rng: Rc<RefCell<Prng>>,
}

impl SimCx {
    pub(crate) fn new(shared: Rc<Shared>, rng: Prng) -> SimCx {
        SimCx {
            shared,
            rng: Rc::new(RefCell::new(rng)),
        }
    }

    /// A handle with a sequence of random numbers of its own: one per client, so that taking one
    /// client away leaves the others what they were.
    pub fn fork(&self) -> SimCx {
        SimCx::new(self.shared.clone(), self.rng.borrow_mut().fork())
    }

    /// Virtual time, microseconds since the Unix epoch. The truth, not what a node's clock shows.
    pub fn now(&self) -> Time {
        Time(self.shared.epoch_us + self.shared.now_ns.get() / 1_000)
    }

    /// Virtual nanoseconds since the run began: the clock of histories.
    pub fn now_ns(&self) -> u64 {
        self.shared.now_ns.get()
    }

    /// Random numbers of this handle. Not to be held across an await.
    pub fn rng(&self) -> RefMut<'_, Prng> {
        self.rng.borrow_mut()
    }

    /// Nodes of the cluster; they are numbered from 1.
    pub fn nodes(&self) -> u16 {
        self.shared.nodes
    }

    /// Shards per node.
    pub fn shards(&self) -> u16 {
        self.shared.shards
    }

    /// Whether clients are to end: they finish what is under way and return.
    pub fn stopping(&self) -> bool {
        self.shared.stopping.get()
    }

    /// Waits this many virtual microseconds.
    pub async fn sleep(&self, micros: u64) {
        self.until(micros, || false).await;
    }

    /// Waits a random time below this many virtual microseconds.
    pub async fn pause(&self, micros: u64) {
        let micros = self.rng().below(micros);
        self.sleep(micros).await;
    }

    /// Waits until nothing happens in the world any more but by timers, at most `limit_us` of
    /// virtual time: a task that waits then is blocked. Other tasks that sleep count as timers.
    /// Shards that repeat a message until it is answered may never leave the world quiet.
    pub async fn quiet(&self, limit_us: u64) {
        let came = Rc::new(Cell::new(false));
        let (task, seen) = (self.shared.current(), came.clone());
        self.shared.request(Request::Quiet { task, came });
        self.until(limit_us, move || seen.get()).await;
    }

    /// Waits until a task that is woken finds `done`, at most so many virtual microseconds.
    async fn until(&self, micros: u64, done: impl Fn() -> bool) {
        let at_ns = self.shared.now_ns.get() + micros.max(1) * 1_000;
        let mut asked = false;
        std::future::poll_fn(|_| {
            if done() || self.shared.now_ns.get() >= at_ns {
                return Poll::Ready(());
            }
            if !std::mem::replace(&mut asked, true) {
                let task = self.shared.current();
                self.shared.request(Request::Sleep { task, at_ns });
            }
            Poll::Pending
        })
        .await;
    }

    /// Connects to `node` (from 1), database `postgres`. The node deals connections to its shards
    /// in turn.
    ///
    /// # Errors
    /// The node is down, or refuses.
    pub async fn connect(&self, node: u16) -> Result<SimConn, SimError> {
        // Of the protocols that leave it open, both policies of reads meet, and both kinds of READ
        // ONLY transactions.
        let pessimistic = [("read_policy", "pessimistic")];
        let deferrable = [("default_transaction_deferrable", "on")];
        match self.shared.next_conn.get() % 4 {
            1 => self.connect_with(node, &deferrable).await,
            3 => self.connect_with(node, &pessimistic).await,
            _ => self.connect_with(node, &[]).await,
        }
    }

    /// A node of the cluster, drawn at random.
    pub fn any_node(&self) -> u16 {
        self.rng().below(u64::from(self.nodes())) as u16 + 1
    }

    /// Connects to a node drawn at random. If that is not possible it takes a while, and there is
    /// no connection.
    pub(crate) async fn connect_any(&self) -> Option<SimConn> {
        let conn = self.connect(self.any_node()).await.ok();
        if conn.is_none() {
            self.sleep(50_000).await;
        }
        conn
    }

    /// As [`SimCx::connect`], with more startup parameters (`database`, settings).
    ///
    /// # Errors
    /// As [`SimCx::connect`].
    pub async fn connect_with(
        &self,
        node: u16,
        more: &[(&str, &str)],
    ) -> Result<SimConn, SimError> {
        let mut parameters = vec![("user".to_owned(), "postgres".to_owned())];
        parameters.extend(
            more.iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        );
        let id = self.shared.next_conn.get();
        self.shared.next_conn.set(id + 1);
        let cell = Rc::new(ConnCell {
            id,
            state: Cell::new(ConnState::Opening),
            replies: RefCell::default(),
            waiter: Cell::new(None),
        });
        self.shared.request(Request::Connect {
            node,
            cell: cell.clone(),
            startup: ClientMessage::Startup { parameters },
        });
        let mut conn = SimConn::new(self.shared.clone(), cell, node);
        conn.greeted().await?;
        Ok(conn)
    }

    /// Runs a task beside this one; its result can be waited for.
    pub fn spawn<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> Join<T> {
        let slot = Rc::new(JoinSlot {
            value: RefCell::new(None),
            waiter: Cell::new(None),
        });
        let (shared, filled) = (self.shared.clone(), slot.clone());
        self.shared.spawn(Box::pin(async move {
            let value = task.await;
            *filled.value.borrow_mut() = Some(value);
            shared.woken.borrow_mut().extend(filled.waiter.take());
        }));
        Join {
            shared: self.shared.clone(),
            slot,
        }
    }
}

struct JoinSlot<T> {
    value: RefCell<Option<T>>,
    waiter: Cell<Option<TaskId>>,
}

/// A task that runs beside.
pub struct Join<T> {
    shared: Rc<Shared>,
    slot: Rc<JoinSlot<T>>,
}

impl<T> Join<T> {
    /// Whether its result is there.
    pub fn is_finished(&self) -> bool {
        self.slot.value.borrow().is_some()
    }

    /// Waits for its result.
    pub async fn join(self) -> T {
        std::future::poll_fn(|_| match self.slot.value.borrow_mut().take() {
            Some(value) => Poll::Ready(value),
            None => {
                self.slot.waiter.set(Some(self.shared.current()));
                Poll::Pending
            }
        })
        .await
    }
}

/// All tasks of a run.
pub(crate) struct Executor {
    shared: Rc<Shared>,
    tasks: BTreeMap<TaskId, Task>,
    ready: VecDeque<TaskId>,
}

impl Executor {
    pub(crate) fn new(shared: Rc<Shared>) -> Executor {
        Executor {
            shared,
            tasks: BTreeMap::new(),
            ready: VecDeque::new(),
        }
    }

    /// The task goes on when [`Executor::run`] is called next.
    pub(crate) fn wake(&mut self, task: TaskId) {
        self.ready.push_back(task);
    }

    /// Polls what is ready until nothing is.
    pub(crate) fn run(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            for (id, task) in self.shared.spawned.borrow_mut().drain(..) {
                self.tasks.insert(id, task);
                self.ready.push_back(id);
            }
            self.ready.extend(self.shared.woken.borrow_mut().drain(..));
            let Some(id) = self.ready.pop_front() else {
                return;
            };
            // A task that was woken twice may have ended in between.
            let Some(task) = self.tasks.get_mut(&id) else {
                continue;
            };
            self.shared.current.set(Some(id));
            let done = task.as_mut().poll(&mut context).is_ready();
            self.shared.current.set(None);
            if done {
                self.tasks.remove(&id);
            }
        }
    }
}
