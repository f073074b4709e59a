//! Transactions that hold rows and ask for each other's: the members of a cycle, one by one.
//!
//! Each member is a connection with a thread, which waits for the server so that nobody else has
//! to. It is told what to do, and says when it asked and what came of it.

use super::deadlock::{Asked, Cycle, Outcome, Rule, TABLE, duration_of};
use super::{FunctionOptions, Ground, is_lock_timeout};
use links::DriveError;
use links::answers::{Answers, ServerError};
use links::error::While;
use links::link::{Link, LinkError, Status};
use links::url::Wire;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Rows, of which each ring takes others than the one before it.
const ROWS: u32 = 96;
/// Members of the largest ring.
const MEMBERS_MAX: usize = 3;
/// A request that was not answered by then waits.
const SETTLE: Duration = Duration::from_millis(50);
/// The same of the questions about rules, which decide for all rings.
const RULE_SETTLE: Duration = Duration::from_millis(300);
/// Beyond the end of a cycle's limit a member hears of it by then.
const FAREWELL: Duration = Duration::from_secs(3);

/// What a member is told to do.
enum Order {
    /// Begin, and change the row.
    Begin { row: u32 },
    /// Change the row.
    Ask { row: u32 },
    /// Commit, or roll back if the server has ended it.
    End,
}

/// What a member says about the last order.
struct Reply {
    member: usize,
    /// When its last statement was sent.
    asked: Instant,
    answered: Instant,
    result: Result<(), LinkError>,
}

/// A member: a connection with a thread, which waits so that nobody else has to.
struct Member {
    orders: Sender<Order>,
    /// Ends its session by its number.
    id: String,
}

fn serve(
    mut link: Link,
    member: usize,
    begin: &str,
    orders: &Receiver<Order>,
    replies: &Sender<Reply>,
) {
    for order in orders {
        let mut asked = Instant::now();
        let mut say = |link: &mut Link, sql: &str| {
            asked = Instant::now();
            link.command(sql)
        };
        let result = match order {
            Order::Begin { row } => {
                say(&mut link, begin).and_then(|()| say(&mut link, &change(row, member)))
            }
            Order::Ask { row } => say(&mut link, &change(row, member)),
            Order::End => match link.status() {
                Status::Open => say(&mut link, "COMMIT"),
                Status::Failed => say(&mut link, "ROLLBACK"),
                Status::Idle => Ok(()),
            },
        };
        // An error may leave the transaction open (MySQL's 1205).
        if result.is_err() && link.status() != Status::Idle {
            // If it fails the next order will.
            let _ = link.command("ROLLBACK");
        }
        let reply = Reply {
            member,
            asked,
            answered: Instant::now(),
            result,
        };
        if replies.send(reply).is_err() {
            break;
        }
    }
    link.close();
}

/// A regular expression is nothing that commutes, for any server, and no formula of Trellis.
fn change(row: u32, member: usize) -> String {
    let word = "left(regexp_replace(md5(word), 'g', 'h'), 8)";
    format!("UPDATE {TABLE} SET v = {member}, word = {word} WHERE k = {row}")
}

/// The members of a test.
pub(super) struct Ring<'a> {
    ground: &'a Ground,
    admin: Link,
    members: Vec<Member>,
    replies: Receiver<Reply>,
    homes: Option<Vec<i64>>,
    cycle_limit: Duration,
    /// Takes of rows so far.
    taken: u32,
}

/// What a member has come to.
#[derive(Clone, Debug)]
enum State {
    /// Has its own row.
    Begun,
    /// Has asked for another row.
    Asked,
    Committed,
    Ended(ServerError),
}

/// How far a ring is.
struct Course {
    states: Vec<State>,
    /// When each member asked for the other's row, once that was answered.
    asked: Vec<Option<Instant>>,
    /// Requests that ended in an error, and when that came.
    errors: Vec<(Instant, Instant)>,
}

impl Course {
    fn new(size: usize) -> Course {
        Course {
            states: vec![State::Begun; size],
            asked: vec![None; size],
            errors: Vec::new(),
        }
    }

    fn is_asking(&self) -> bool {
        self.states.iter().any(|it| matches!(it, State::Asked))
    }

    /// Not all members have ended.
    fn is_waiting(&self) -> bool {
        let is_open = |it: &State| matches!(it, State::Begun | State::Asked);
        self.states.iter().any(is_open)
    }

    fn victims(&self) -> Vec<(usize, ServerError)> {
        let members = self.states.iter().enumerate();
        let victims = members.filter_map(|(member, state)| match state {
            State::Ended(error) => Some((member, error.clone())),
            State::Begun | State::Asked | State::Committed => None,
        });
        victims.collect()
    }
}

impl<'a> Ring<'a> {
    pub(super) fn open(
        ground: &'a Ground,
        options: &FunctionOptions,
    ) -> Result<Ring<'a>, DriveError> {
        let mut admin = ground.admin()?;
        let columns = "k integer PRIMARY KEY, v integer NOT NULL, word varchar(20) NOT NULL";
        ground.make(&mut admin, TABLE, columns)?;
        let values: Vec<String> = (1..=ROWS)
            .map(|row| format!("({row}, -1, 'held')"))
            .collect();
        let insert = format!(
            "INSERT INTO {TABLE} (k, v, word) VALUES {}",
            values.join(", ")
        );
        admin
            .command(&insert)
            .during("filling a table of the test")?;
        let homes = ground.homes(&mut admin, TABLE, ROWS)?;
        let (say, replies) = channel();
        let patience = (options.cycle_limit + FAREWELL).max(options.patience);
        let mut members = Vec::new();
        for member in 0..MEMBERS_MAX {
            let mut link = ground.link(member, patience)?;
            let id = session_id(ground, &mut link)?;
            let (orders, received) = channel();
            let (begin, say) = (ground.begin(false), say.clone());
            // It ends with the sender of its orders, or with its connection.
            std::thread::spawn(move || serve(link, member, &begin, &received, &say));
            members.push(Member { orders, id });
        }
        Ok(Ring {
            ground,
            admin,
            members,
            replies,
            homes,
            cycle_limit: options.cycle_limit,
            taken: 0,
        })
    }

    /// PostgreSQL looks for a cycle when a wait has lasted for so long.
    pub(super) fn promised(&mut self) -> Result<Option<Duration>, DriveError> {
        if self.ground.server.is_trellis || self.ground.target.wire != Wire::Postgres {
            return Ok(None);
        }
        let mut answers = Answers::new();
        match self.admin.query("SHOW deadlock_timeout", &mut answers) {
            Ok(()) => Ok(duration_of(answers.text(0, 0, 0))),
            Err(LinkError::Server(_)) => Ok(None),
            Err(error) => Err(DriveError::Link("asking for deadlock_timeout", error)),
        }
    }

    /// Rows for so many members: of different nodes where it is known which those are, far apart
    /// elsewhere.
    fn rows(&mut self, count: usize) -> Vec<u32> {
        let turn = self.taken;
        self.taken += 1;
        let mut rows: Vec<u32> = Vec::new();
        let stride = ROWS / MEMBERS_MAX as u32;
        for at in 0..count as u32 {
            let start = at * stride + turn % stride;
            let all = (0..ROWS).map(|step| 1 + (start + step) % ROWS);
            let free = |row: &u32| !rows.contains(row);
            let home = |row: u32| self.homes.as_ref().map(|homes| homes[row as usize - 1]);
            let is_new =
                |row: &u32| home(*row).is_some() && rows.iter().all(|it| home(*it) != home(*row));
            let found = all.clone().find(is_new).or_else(|| all.clone().find(free));
            rows.push(found.expect("there are more rows than members"));
        }
        rows
    }

    fn order(&self, member: usize, order: Order) -> Result<(), DriveError> {
        let gone = LinkError::Protocol("a member of the deadlock test has ended");
        let sent = self.members[member].orders.send(order);
        sent.map_err(|_| DriveError::Link("the deadlock test", gone))
    }

    /// What somebody says within this time.
    fn reply(&self, within: Duration) -> Result<Option<Reply>, DriveError> {
        match self.replies.recv_timeout(within) {
            Ok(reply) => Ok(Some(reply)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let gone = LinkError::Protocol("all members of the deadlock test have ended");
                Err(DriveError::Link("the deadlock test", gone))
            }
        }
    }

    /// Has a member do what nobody keeps it from, and waits.
    fn must(&self, member: usize, order: Order) -> Result<Result<(), ServerError>, DriveError> {
        self.order(member, order)?;
        let reply = self.reply(self.ground.patience)?;
        let silent = || LinkError::Protocol("a statement that nothing holds up is not answered");
        let reply = reply.ok_or_else(|| DriveError::Link("the deadlock test", silent()))?;
        ended(reply.result)
    }

    /// Has each member commit something, and clears the rows. A member that was ended may be taken
    /// to try again, with the age of that attempt, until it has committed.
    fn prepare(&mut self, rows: &[u32]) -> Result<(), DriveError> {
        for order in [|row| Order::Begin { row }, |_| Order::End] {
            for (member, row) in rows.iter().enumerate() {
                let done = self.must(member, order(*row))?;
                done.map_err(|error| DriveError::Link("preparing a cycle", error.into()))?;
            }
        }
        self.reset(rows)
    }

    /// Begins transactions one after the other: the first is the oldest.
    fn begin(&self, rows: &[u32]) -> Result<(), DriveError> {
        for (member, row) in rows.iter().enumerate() {
            let begun = self.must(member, Order::Begin { row: *row })?;
            begun.map_err(|error| DriveError::Link("beginning a cycle", error.into()))?;
        }
        Ok(())
    }

    /// What happens where no cycle is.
    pub(super) fn rule(&mut self) -> Result<Rule, DriveError> {
        let younger = self.ask_alone(1, 0)?;
        let older = self.ask_alone(0, 1)?;
        Ok(Rule { younger, older })
    }

    /// One member asks for the row of another, which waits for nothing and ends afterwards.
    fn ask_alone(&mut self, asks: usize, holds: usize) -> Result<Asked, DriveError> {
        let rows = self.rows(2);
        self.prepare(&rows)?;
        self.begin(&rows)?;
        self.order(asks, Order::Ask { row: rows[holds] })?;
        let early = self.reply(RULE_SETTLE)?.map(|reply| ended(reply.result));
        let asked = match early {
            None => Asked::Waits,
            Some(Ok(Ok(()))) => Asked::Takes,
            Some(Ok(Err(error))) => Asked::Refused(error.sqlstate),
            Some(Err(error)) => return Err(error),
        };
        // Its end gives the row to the one that waits; whether it was ended does not matter.
        self.order(holds, Order::End)?;
        let awaited = if asked == Asked::Waits { 2 } else { 1 };
        for _ in 0..awaited {
            let reply = self.reply(self.cycle_limit)?;
            let silent = LinkError::Protocol("a wait does not end with the transaction waited for");
            let reply = reply.ok_or(DriveError::Link("the deadlock test", silent))?;
            // REPEATABLE READ may refuse a row that was changed meanwhile.
            let _ = ended(reply.result)?;
        }
        let _ = self.must(asks, Order::End)?;
        Ok(asked)
    }

    /// Makes a ring and waits for its end.
    pub(super) fn cycle(&mut self, number: usize, rule: &Rule) -> Result<Cycle, DriveError> {
        let size = 2 + number % (MEMBERS_MAX - 1);
        let rows = self.rows(size);
        self.prepare(&rows)?;
        self.begin(&rows)?;
        let mut course = Course::new(size);
        let first = (number / (MEMBERS_MAX - 1)) % size;
        let mut is_closed = true;
        for turn in 0..size {
            let member = (first + turn) % size;
            let row = rows[(member + 1) % size];
            course.states[member] = State::Asked;
            self.order(member, Order::Ask { row })?;
            if turn + 1 < size {
                is_closed &= !self.follow(&mut course, Instant::now() + SETTLE)?;
            }
        }
        let sent = Instant::now();
        self.follow(&mut course, sent + self.cycle_limit)?;
        // The last request closed it; its own thread knows the moment, once it was answered.
        let closer = (first + size - 1) % size;
        let closed = is_closed.then(|| course.asked[closer].unwrap_or(sent));
        let mut cycle = Cycle {
            size,
            nodes: self.nodes_of(&rows),
            is_closed,
            outcome: Outcome::NotEnded,
            victims: course.victims(),
            latency: latency(&course.errors, closed),
        };
        if course.is_waiting() {
            self.end_sessions(size);
            return Ok(cycle);
        }
        cycle.outcome = match self.is_mixed(&rows, &course.states)? {
            true => Outcome::Mixed,
            false => outcome(&cycle, rule),
        };
        Ok(cycle)
    }

    fn nodes_of(&self, rows: &[u32]) -> Option<usize> {
        let homes = self.homes.as_ref()?;
        let mut nodes: Vec<i64> = rows.iter().map(|row| homes[*row as usize - 1]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        Some(nodes.len())
    }

    /// Takes replies and has those who got theirs end, until all have ended or `until`. Whether
    /// anybody replied.
    fn follow(&self, course: &mut Course, until: Instant) -> Result<bool, DriveError> {
        let mut has_replied = false;
        // Members whose COMMIT is under way.
        let mut ending = Vec::new();
        while course.is_asking() || !ending.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            // A COMMIT that nothing holds up is always waited for.
            let left = match ending.is_empty() {
                true => left,
                false => left.max(self.ground.patience),
            };
            let Some(reply) = self.reply(left)? else {
                return Ok(has_replied);
            };
            has_replied = true;
            let member = reply.member;
            let is_ending = ending.contains(&member);
            ending.retain(|it| *it != member);
            if !is_ending {
                course.asked[member] = Some(reply.asked);
            }
            match ended(reply.result)? {
                Ok(()) if is_ending => course.states[member] = State::Committed,
                Ok(()) => {
                    ending.push(member);
                    self.order(member, Order::End)?;
                }
                Err(error) => {
                    course.errors.push((reply.asked, reply.answered));
                    course.states[member] = State::Ended(error);
                }
            }
        }
        Ok(has_replied)
    }

    fn reset(&mut self, rows: &[u32]) -> Result<(), DriveError> {
        let rows: Vec<String> = rows.iter().map(u32::to_string).collect();
        let sql = format!("UPDATE {TABLE} SET v = -1 WHERE k IN ({})", rows.join(", "));
        self.admin.command(&sql).during("preparing a cycle")
    }

    /// Whether the rows hold what no order of the committed members explains.
    fn is_mixed(&mut self, rows: &[u32], states: &[State]) -> Result<bool, DriveError> {
        let mut values = Vec::new();
        let mut answers = Answers::new();
        for row in rows {
            let sql = format!("SELECT v FROM {TABLE} WHERE k = {row}");
            self.admin
                .query(&sql, &mut answers)
                .during("looking at a cycle")?;
            values.push(answers.int(0, 0, 0));
        }
        let committed = states.iter().map(|state| matches!(state, State::Committed));
        Ok(is_mixed(&values, &committed.collect::<Vec<_>>()))
    }

    /// Has the server end the members' sessions. Best effort: their connections are given up
    /// anyway, and the test has failed.
    fn end_sessions(&mut self, size: usize) {
        for member in &self.members[..size] {
            let sql = match self.ground.target.wire {
                Wire::MySql => format!("KILL {}", member.id),
                _ => {
                    format!("SELECT pg_terminate_backend({})", member.id)
                }
            };
            let _ = self.admin.command(&sql);
        }
    }
}

/// A server's error is an answer; without a connection there is none.
fn ended(result: Result<(), LinkError>) -> Result<Result<(), ServerError>, DriveError> {
    match result {
        Ok(()) => Ok(Ok(())),
        Err(LinkError::Server(error)) => Ok(Err(error)),
        Err(error) => Err(DriveError::Link("the deadlock test", error)),
    }
}

fn session_id(ground: &Ground, link: &mut Link) -> Result<String, DriveError> {
    let sql = match ground.target.wire {
        Wire::MySql => "SELECT connection_id()",
        _ => "SELECT pg_backend_pid()",
    };
    let mut answers = Answers::new();
    link.query(sql, &mut answers)
        .during("asking for the number of a session")?;
    Ok(answers.text(0, 0, 0).to_owned())
}

/// From the later of the victim's request and the closing to the first error.
fn latency(errors: &[(Instant, Instant)], closed: Option<Instant>) -> Option<Duration> {
    let (asked, answered) = errors.iter().min_by_key(|(_, answered)| *answered)?;
    let from = closed.map_or(*asked, |closed| closed.max(*asked));
    Some(answered.saturating_duration_since(from))
}

/// What a ring whose members have all ended shows.
fn outcome(cycle: &Cycle, rule: &Rule) -> Outcome {
    let is_timeout = |(_, error): &(usize, ServerError)| is_lock_timeout(&error.sqlstate);
    if cycle.victims.is_empty() {
        return Outcome::NoConflict;
    }
    if cycle.victims.iter().any(is_timeout) {
        return Outcome::TimedOut;
    }
    match cycle.is_closed && rule.is_none() {
        true => Outcome::Detected,
        false => Outcome::Prevented,
    }
}

/// Member `m` writes its number into the rows `m` and `m + 1`. A row must hold the number of a
/// committed one of its two writers; and if all have committed and each row holds its first writer,
/// or each its second, each member came before the next one, in a ring.
fn is_mixed(values: &[Option<i64>], committed: &[bool]) -> bool {
    let size = committed.len();
    let before = |row: usize| (row + size - 1) % size;
    let holds = |row: usize, member: usize| values[row] == Some(member as i64);
    let is_possible = |row: usize| {
        let by_none = !committed[row] && !committed[before(row)];
        (by_none && values[row] == Some(-1))
            || [row, before(row)]
                .iter()
                .any(|it| committed[*it] && holds(row, *it))
    };
    let mut rows = 0..size;
    let is_ring = committed.iter().all(|it| *it)
        && (rows.clone().all(|row| holds(row, row))
            || rows.clone().all(|row| holds(row, before(row))));
    is_ring || !rows.all(is_possible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_order_is_mixed() {
        let values = |list: &[i64]| list.iter().copied().map(Some).collect::<Vec<_>>();
        // Both committed: one after the other, or each last in its own row.
        assert!(!is_mixed(&values(&[0, 0]), &[true, true]));
        assert!(is_mixed(&values(&[0, 1]), &[true, true]));
        assert!(is_mixed(&values(&[1, 0]), &[true, true]));
        // The victim's write is gone.
        assert!(!is_mixed(&values(&[0, 0]), &[true, false]));
        assert!(is_mixed(&values(&[0, 1]), &[true, false]));
        assert!(is_mixed(&values(&[0, -1]), &[true, false]), "a lost write");
        assert!(!is_mixed(&values(&[-1, -1]), &[false, false]));
        // Of three, rows 0, 1, 2 are written by 0 and 2, 1 and 0, 2 and 1.
        assert!(!is_mixed(&values(&[0, 0, 2]), &[true, false, true]));
        assert!(!is_mixed(&values(&[0, 1, 1]), &[true, true, true]));
        assert!(is_mixed(&values(&[2, 0, 1]), &[true, true, true]));
        assert!(is_mixed(&[Some(0), None], &[true, true]));
    }

    #[test]
    fn an_error_counts_from_the_closing_of_the_cycle() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let ms = |errors: &[(Instant, Instant)], closed| {
            latency(errors, closed).map(|it| it.as_millis())
        };
        // The victim waited before the cycle was closed.
        assert_eq!(ms(&[(at(0), at(90))], Some(at(50))), Some(40));
        assert_eq!(
            ms(&[(at(0), at(90)), (at(60), at(80))], Some(at(50))),
            Some(20)
        );
        assert_eq!(ms(&[(at(10), at(12))], None), Some(2));
        assert_eq!(ms(&[], None), None);
    }
}
