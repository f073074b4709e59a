//! The tables against lists that are searched.

use super::*;
use base::Prng;

const PAUSES: Pauses = Pauses {
    first_us: 4,
    longest_us: 16,
};

#[derive(Clone, Copy, PartialEq, Debug)]
struct Question {
    to: ShardId,
    life: Option<u32>,
}

impl Asked for Question {
    fn receiver(&self) -> ShardId {
        self.to
    }

    fn life(&self) -> Option<u32> {
        self.life
    }
}

/// One question as a list keeps it.
#[derive(Clone, Copy, Debug)]
struct Listed {
    number: u64,
    what: Question,
    again_at: Option<Time>,
    pause_us: u64,
    heard: Time,
}

#[derive(Default)]
struct Model(Vec<Listed>);

impl Model {
    fn find(&mut self, number: u64) -> Option<&mut Listed> {
        self.0.iter_mut().find(|ask| ask.number == number)
    }

    fn take_due(&mut self, now: Time) -> Option<u64> {
        let due = self.0.iter_mut().filter(|ask| ask.again_at <= Some(now));
        let due = due.filter(|ask| ask.again_at.is_some());
        let first = due.min_by_key(|ask| (ask.again_at, ask.number))?;
        first.pause_us = (2 * first.pause_us).min(PAUSES.longest_us);
        first.again_at = Some(now.after(first.pause_us));
        Some(first.number)
    }

    fn numbers(&self, wanted: impl Fn(&Listed) -> bool) -> Vec<u64> {
        let wanted = self.0.iter().filter(|ask| wanted(ask));
        let mut numbers: Vec<u64> = wanted.map(|ask| ask.number).collect();
        numbers.sort_unstable();
        numbers
    }
}

fn shard(prng: &mut Prng) -> ShardId {
    ShardId::new(NodeId(1 + prng.below(3) as u16), prng.below(2) as u16)
}

/// One random step of the table and of the list.
fn step(prng: &mut Prng, asks: &mut Asks<u64, Question>, model: &mut Model, now: Time) {
    let number = prng.below(12);
    let known = model.find(number).is_some();
    match prng.below(8) {
        0..=2 if !known => {
            let life = (prng.below(2) == 0).then(|| prng.below(4) as u32);
            let (to, repeats) = (shard(prng), prng.below(4) > 0);
            let what = Question { to, life };
            asks.begin(number, what, now, repeats);
            model.0.push(Listed {
                number,
                what,
                again_at: repeats.then(|| now.after(PAUSES.first_us)),
                pause_us: PAUSES.first_us,
                heard: now,
            });
        }
        3 => {
            assert_eq!(asks.end(number).is_some(), known);
            model.0.retain(|ask| ask.number != number);
        }
        4 => {
            asks.hear(number, now);
            if let Some(ask) = model.find(number) {
                ask.heard = now;
            }
        }
        5 => {
            assert_eq!(asks.restart(number, now), known);
            if let Some(ask) = model.find(number) {
                ask.pause_us = PAUSES.first_us;
                ask.again_at = ask.again_at.map(|_| now.after(PAUSES.first_us));
            }
        }
        6 => {
            asks.defer(number, now);
            if let Some(ask) = model.find(number) {
                ask.again_at = Some(now.after(ask.pause_us));
            }
        }
        _ => loop {
            let due = asks.take_due(now);
            assert_eq!(due, model.take_due(now));
            if due.is_none() {
                break;
            }
        },
    }
}

#[test]
fn asks_are_those_of_a_list() {
    for seed in 0..200 {
        let mut prng = Prng::new(seed);
        let mut asks = Asks::default();
        asks.set_pauses(PAUSES);
        let mut model = Model::default();
        let mut now = Time(0);
        for _ in 0..300 {
            now = now.after(prng.below(4));
            step(&mut prng, &mut asks, &mut model, now);
            let mut all: Vec<(u64, Question)> =
                model.0.iter().map(|a| (a.number, a.what)).collect();
            all.sort_unstable_by_key(|(number, _)| *number);
            assert!(asks.iter().map(|(n, what)| (n, *what)).eq(all));
            let next = model.0.iter().filter_map(|ask| ask.again_at);
            assert_eq!(asks.next_due(), next.min());
            let (to, node, life) = (shard(&mut prng), NodeId(2), 1 + prng.below(4) as u32);
            let to_it = model.numbers(|ask| ask.what.to == to);
            assert_eq!(asks.floor(to), to_it.first().copied());
            let some = asks.range(3..9).map(|(number, _)| number);
            assert!(some.eq(model.numbers(|ask| (3..9).contains(&ask.number))));
            let there = |ask: &Listed| ask.what.to.node() == node;
            assert_eq!(asks.at(node), model.numbers(there));
            let lost = |ask: &Listed| there(ask) && ask.what.life.is_some_and(|own| own < life);
            assert_eq!(asks.lost(node, life), model.numbers(lost));
            for ask in &model.0 {
                let silent = now.since(ask.heard) >= 20;
                assert_eq!(asks.is_silent(ask.number, now, 20), silent);
                assert_eq!(asks[ask.number], ask.what);
            }
            assert_eq!(asks.first(), model.numbers(|_| true).first().copied());
            assert_eq!(asks.is_empty(), model.0.is_empty());
        }
    }
}

#[test]
fn rounds_repeat_what_is_old_enough() {
    for seed in 0..100 {
        let mut prng = Prng::new(seed);
        let mut rounds: Rounds<u64, u64> = Rounds::default();
        rounds.set_pause(10);
        let mut model: BTreeMap<u64, (u64, Time, bool)> = BTreeMap::new();
        let mut alarm: Option<Time> = None;
        let mut now = Time(0);
        for step in 0..300 {
            now = now.after(prng.below(4));
            let number = prng.below(8);
            match prng.below(5) {
                0 | 1 => {
                    let repeats = prng.below(3) > 0;
                    rounds.begin(number, step, now, repeats);
                    model.insert(number, (step, now, repeats));
                    if repeats {
                        alarm = alarm.or(Some(now.after(10)));
                    }
                }
                2 => {
                    let told = rounds.end(&number).map(|told| (told.what, told.sent));
                    let known = model.remove(&number);
                    assert_eq!(told, known.map(|(what, sent, _)| (what, sent)));
                }
                3 => {
                    let told = rounds.resend(&number, now).copied();
                    let known = model.get_mut(&number);
                    assert_eq!(
                        told,
                        known.map(|known| {
                            known.1 = now;
                            known.0
                        })
                    );
                }
                _ if alarm.is_some_and(|at| at <= now) => {
                    let mut due = Vec::new();
                    for (number, (_, sent, repeats)) in &mut model {
                        if *repeats && now.since(*sent) >= 10 {
                            *sent = now;
                            due.push(*number);
                        }
                    }
                    assert_eq!(rounds.take_round(now), due);
                    let open = model.values().any(|(.., repeats)| *repeats);
                    alarm = open.then(|| now.after(10));
                }
                _ => {}
            }
            assert_eq!(rounds.next_due(), alarm);
            assert_eq!(rounds.len(), model.len());
            assert!(
                rounds
                    .iter()
                    .map(|(n, what)| (*n, *what))
                    .eq(model.iter().map(|(n, (what, ..))| (*n, *what)))
            );
        }
    }
}
