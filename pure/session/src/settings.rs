//! The settings of one session: values from startup, SET and SET LOCAL, and the values that a
//! rollback restores.
//!
//! Only values that differ from the server's defaults are stored.

use crate::acting::{ROLE, SESSION_ROLE};
use crate::message::Admission;
use crate::statements::UNCOUNTED;
use base::SqlError;
use base::text::SpanStyle;
use base::zone::Zone;
use expr::zoned;
use parse::session::Isolation;
use pg_catalog::settings::{self as known, SETTINGS};
use std::collections::BTreeMap;
use wire::Severity;

/// Lower-case names and values.
type Values = BTreeMap<Box<str>, Box<str>>;

/// Settings of one session.
#[derive(Default)]
pub(super) struct Settings {
    /// Values that RESET restores, from the startup message.
    start: Values,
    current: Values,
    /// Values before the open transaction's first change; `None`: it has changed none.
    undo: Option<Box<Undo>>,
    /// Values of reported settings that the client was told.
    told: Values,
    /// Whether a value has changed since then.
    untold: bool,
    /// The values that the session itself uses.
    pub(super) knobs: Knobs,
    /// Time zone and style of intervals, as plans have them ([`zoned::of_settings`]).
    zone_name: Box<str>,
    /// How intervals are written.
    style: SpanStyle,
}

#[derive(Clone)]
struct Undo {
    /// Values after a rollback.
    before: Values,
    /// Values after a commit: without SET LOCAL.
    after: Values,
}

/// All values at a savepoint.
pub(super) struct Mark {
    current: Values,
    undo: Option<Box<Undo>>,
}

/// Settings that the session uses, read once per change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Knobs {
    /// 0: no limit.
    pub(super) statement_timeout_us: u64,
    /// Statements that take this long are told to the host.
    pub(super) log_min_us: u64,
    /// 0: no limit.
    pub(super) lock_timeout_us: u64,
    /// 0: no limit.
    pub(super) in_doubt_timeout_us: u64,
    /// 0: no limit.
    pub(super) idle_in_transaction_timeout_us: u64,
    /// 0: no limit.
    pub(super) idle_timeout_us: u64,
    /// False: answers do not wait for the transaction's own commit record.
    pub(super) synchronous_commit: bool,
    pub(super) admission: Admission,
    /// Whether commits of several nodes are answered before the decision is durable.
    pub(super) early_answer: bool,
    /// Whether reads lock their rows under every protocol.
    pub(super) locks_reads: bool,
    pub(super) default_isolation: Isolation,
    pub(super) default_read_only: bool,
    /// Whether SERIALIZABLE READ ONLY transactions are DEFERRABLE if they do not say.
    pub(super) default_deferrable: bool,
    /// What the rows of a statement begin with: 0, or `UNCOUNTED` if statements are not counted.
    pub(super) statement_rows: u64,
    /// Least severity of messages to the client, as [`rank`] counts.
    least: u8,
}

impl Default for Knobs {
    fn default() -> Self {
        Knobs::read(&Values::new())
    }
}

impl Knobs {
    fn read(values: &Values) -> Knobs {
        let micros = |name: &str| {
            let number = known::integer(name, value_in(values, name).unwrap_or("0"));
            number
                .and_then(|millis| u64::try_from(millis).ok())
                .unwrap_or(0)
                * 1000
        };
        let percent = value_in(values, "admission_potential").and_then(|text| text.parse().ok());
        let word = |name: &str| value_in(values, name).unwrap_or_default();
        Knobs {
            statement_timeout_us: micros("statement_timeout"),
            log_min_us: known::integer(
                "log_min_duration_statement",
                value_in(values, "log_min_duration_statement").unwrap_or("-1"),
            )
            .and_then(|millis| u64::try_from(millis).ok())
            .map_or(u64::MAX, |millis| millis * 1000),
            lock_timeout_us: micros("lock_timeout"),
            in_doubt_timeout_us: micros("in_doubt_timeout"),
            idle_in_transaction_timeout_us: micros("idle_in_transaction_session_timeout"),
            idle_timeout_us: micros("idle_session_timeout"),
            synchronous_commit: word("synchronous_commit") != "off",
            admission: Admission {
                potential_max_percent: percent.unwrap_or(100),
                wait_us: micros("admission_wait"),
            },
            early_answer: word("early_answer") != "off",
            locks_reads: word("read_policy") == "pessimistic",
            default_isolation: isolation(word("default_transaction_isolation")),
            default_read_only: word("default_transaction_read_only") == "on",
            default_deferrable: word("default_transaction_deferrable") == "on",
            statement_rows: match word("pg_stat_statements.track") {
                "none" => UNCOUNTED,
                _ => 0,
            },
            least: match word("client_min_messages") {
                "error" => rank(Severity::Error),
                "warning" => rank(Severity::Warning),
                "notice" => rank(Severity::Notice),
                _ => 0,
            },
        }
    }

    /// Whether the client wants to see notices of this severity.
    pub(super) fn tells(&self, severity: Severity) -> bool {
        severity == Severity::Info || rank(severity) >= self.least
    }
}

fn rank(severity: Severity) -> u8 {
    match severity {
        Severity::Info => 1,
        Severity::Notice => 2,
        Severity::Warning => 3,
        Severity::Error | Severity::Fatal | Severity::Panic => 4,
    }
}

/// The level of that name; SERIALIZABLE for an unknown name.
pub(super) fn isolation(word: &str) -> Isolation {
    match word {
        "read uncommitted" => Isolation::ReadUncommitted,
        "read committed" => Isolation::ReadCommitted,
        "repeatable read" => Isolation::RepeatableRead,
        _ => Isolation::Serializable,
    }
}

/// The name of a level as SHOW prints it.
pub(super) fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "read uncommitted",
        Isolation::ReadCommitted => "read committed",
        Isolation::RepeatableRead => "repeatable read",
        Isolation::Serializable => "serializable",
    }
}

/// Reported settings that have changed: names and values.
pub(super) type Report = Vec<(String, String)>;

impl Settings {
    /// Takes the values of the startup message, which were checked before.
    pub(super) fn start(&mut self, values: impl Iterator<Item = (String, String)>) {
        for (name, value) in values {
            put(&mut self.start, &name, &value);
        }
        self.current = self.start.clone();
        self.told = self.current.clone();
        self.read();
    }

    /// Time zone and style of intervals that plans must be made for ([`zoned::of_settings`]).
    pub(super) fn zone_name(&self) -> &str {
        &self.zone_name
    }

    /// The time zone; `None` is UTC.
    pub(super) fn zone(&self) -> Option<Zone> {
        // Most sessions are in UTC, and a look-up of a name costs as much as reading a row.
        match zoned::zone_of(&self.zone_name) {
            "" => None,
            name => Zone::named(name),
        }
    }

    /// How intervals are written.
    pub(super) fn style(&self) -> SpanStyle {
        self.style
    }

    /// Reads the values that the session uses.
    fn read(&mut self) {
        self.knobs = Knobs::read(&self.current);
        let value = |name| value_in(&self.current, name);
        let zone = zoned::of_settings(value("timezone"), value("intervalstyle"));
        if *self.zone_name != *zone {
            self.style = zoned::style_of(&zone);
            self.zone_name = zone.into();
        }
    }

    /// Reported settings whose values the client was not told yet: it is told once, before it is
    /// ready for the next statement.
    pub(super) fn report(&mut self) -> Report {
        if !core::mem::take(&mut self.untold) {
            return Report::new();
        }
        let before = core::mem::replace(&mut self.told, self.current.clone());
        let reported = SETTINGS.iter().filter(|setting| setting.reported);
        reported
            .filter_map(|setting| {
                let value = value_in(&self.current, setting.name)?;
                let changed = value_in(&before, setting.name) != Some(value);
                changed.then(|| (setting.name.to_owned(), value.to_owned()))
            })
            .collect()
    }

    /// The value of a setting, in any case of its name; `None`: there is no such setting.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        value_in(&self.current, name)
    }

    /// SET. In a transaction a rollback undoes it; `local` ends with the transaction in any case.
    /// `value == None` is DEFAULT.
    ///
    /// # Errors
    /// Those of [`known::validate`]; nothing has changed then.
    pub(super) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        in_txn: bool,
        local: bool,
    ) -> Result<(), SqlError> {
        let value = match value {
            Some(value) => known::validate(name, value)?,
            None => {
                let value = self
                    .default_of(name)
                    .ok_or_else(|| known::unknown(name))?
                    .to_owned();
                // A fixed setting refuses even its own default.
                known::validate(name, &value)?
            }
        };
        self.change(in_txn, local, |values| put(values, name, &value));
        Ok(())
    }

    pub(super) fn reset_all(&mut self, in_txn: bool) {
        let mut start = self.start.clone();
        for name in [ROLE, SESSION_ROLE] {
            let kept = self.current.get(name).cloned();
            start.extend(kept.map(|value| (name.into(), value)));
        }
        self.change(in_txn, false, |values| values.clone_from(&start));
    }

    /// Keeps a value that is no setting of the list.
    pub(super) fn keep(&mut self, name: &str, value: Option<&str>, in_txn: bool, local: bool) {
        self.change(in_txn, local, |values| match value {
            Some(value) => drop(values.insert(name.into(), value.into())),
            None => drop(values.remove(name)),
        });
    }

    /// The values at a savepoint.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            current: self.current.clone(),
            undo: self.undo.clone(),
        }
    }

    /// Goes back to a savepoint. Returns whether any setting has changed since.
    pub(super) fn go_back(&mut self, mark: &Mark) -> bool {
        self.undo.clone_from(&mark.undo);
        let changed = self.current != mark.current;
        if changed {
            self.replace(mark.current.clone());
        }
        changed
    }

    /// The transaction has committed. Returns whether it has changed any setting.
    pub(super) fn commit(&mut self) -> bool {
        let undo = self.undo.take();
        undo.map(|undo| self.replace(undo.after)).is_some()
    }

    /// The transaction has rolled back. Returns whether it had changed any setting.
    pub(super) fn roll_back(&mut self) -> bool {
        let undo = self.undo.take();
        undo.map(|undo| self.replace(undo.before)).is_some()
    }

    /// Names and values that differ from the defaults.
    pub(super) fn overrides(&self) -> impl Iterator<Item = (&str, &str)> {
        self.current.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Names and defaults of the settings whose value is not their default.
    pub(super) fn defaults(&self) -> Vec<(String, String)> {
        let start = self
            .start
            .keys()
            .filter(|name| !self.current.contains_key(*name));
        let names = self.current.keys().chain(start);
        let differs = |name: &str| {
            let default = self.default_of(name)?;
            (self.get(name) != Some(default)).then(|| (name.to_owned(), default.to_owned()))
        };
        names.filter_map(|name| differs(name)).collect()
    }

    fn default_of(&self, name: &str) -> Option<&str> {
        value_in(&self.start, name).or(known::is_custom(name).then_some(""))
    }

    fn change(&mut self, in_txn: bool, local: bool, edit: impl Fn(&mut Values)) {
        if in_txn {
            let current = &self.current;
            let undo = self.undo.get_or_insert_with(|| {
                Box::new(Undo {
                    before: current.clone(),
                    after: current.clone(),
                })
            });
            if !local {
                edit(&mut undo.after);
            }
        }
        let mut next = self.current.clone();
        edit(&mut next);
        self.replace(next);
    }

    fn replace(&mut self, next: Values) {
        let before = core::mem::replace(&mut self.current, next);
        // Settings of the user's own stay, without a value, as in PostgreSQL.
        for (name, _) in before {
            if known::is_custom(&name) {
                self.current.entry(name).or_default();
            }
        }
        self.untold = true;
        self.read();
    }
}

fn canonical(name: &str) -> String {
    known::lookup(name)
        .map_or(name, |setting| setting.name)
        .to_ascii_lowercase()
}

fn put(values: &mut Values, name: &str, value: &str) {
    let is_default = known::lookup(name).is_some_and(|setting| setting.default == value);
    let name = canonical(name).into_boxed_str();
    if is_default {
        values.remove(&name);
    } else {
        values.insert(name, value.into());
    }
}

fn value_in<'a>(values: &'a Values, name: &str) -> Option<&'a str> {
    let own = (!values.is_empty())
        .then(|| values.get(&*canonical(name)))
        .flatten();
    own.map(|value| &**value)
        .or_else(|| known::lookup(name).map(|setting| setting.default))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_restores_and_local_ends_with_the_transaction() {
        let mut settings = Settings::default();
        settings
            .set("lock_timeout", Some("1s"), false, false)
            .expect("a known setting");
        assert_eq!(settings.knobs.lock_timeout_us, 1_000_000);
        settings
            .set("lock_timeout", Some("2s"), true, false)
            .expect("a known setting");
        settings
            .set("lock_timeout", Some("3s"), true, true)
            .expect("a known setting");
        assert_eq!(settings.get("LOCK_TIMEOUT"), Some("3s"));
        settings.commit();
        assert_eq!(
            settings.get("lock_timeout"),
            Some("2s"),
            "SET LOCAL is over"
        );
        settings
            .set("lock_timeout", None, true, false)
            .expect("a known setting");
        assert_eq!(settings.get("lock_timeout"), Some("0"));
        settings.roll_back();
        assert_eq!(settings.get("lock_timeout"), Some("2s"));
    }

    #[test]
    fn reported_settings_are_told_at_every_change() {
        let mut settings = Settings::default();
        let told = |name: &str| vec![("application_name".to_owned(), name.to_owned())];
        let set = |settings: &mut Settings, name: &str, value: &str| {
            settings.set(name, Some(value), true, false)
        };
        set(&mut settings, "application_name", "a").expect("known");
        set(&mut settings, "application_name", "b").expect("known");
        assert_eq!(settings.report(), told("b"), "the last value only");
        assert_eq!(settings.report(), []);
        assert!(settings.roll_back(), "something was set");
        assert_eq!(settings.report(), told(""));
        set(&mut settings, "application_name", "c").expect("known");
        settings.roll_back();
        assert_eq!(settings.report(), [], "the client knows no other value");
        set(&mut settings, "work_mem", "4096kB").expect("known");
        assert_eq!(settings.report(), []);
        assert!(set(&mut settings, "no_such", "1").is_err());
        settings
            .set("my.own", Some("x"), false, false)
            .expect("names with a dot are free");
        assert_eq!(settings.get("my.own"), Some("x"));
    }

    /// Values to try on a setting.
    fn samples(setting: &known::Setting) -> Vec<String> {
        use known::Kind;
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let mut samples: Vec<String> = match setting.kind {
            Kind::Bool => words(&["on", "off"]),
            Kind::Integer { min, max, .. } => {
                let middle = (min + max) / 2;
                [min, min + 1, middle, max]
                    .map(|n| n.min(max).to_string())
                    .to_vec()
            }
            Kind::Real { min, max } => [min, (min + max) / 3.0, max]
                .map(|n| n.to_string())
                .to_vec(),
            Kind::Enum(all) => words(all),
            Kind::Alias(pairs) | Kind::Encoding(pairs) => pairs
                .iter()
                .map(|(spelling, _)| (*spelling).to_owned())
                .collect(),
            Kind::Text | Kind::SchemaList => words(&["x", "public", ""]),
            Kind::TimeZone => words(&["Europe/Berlin", "UTC", "-7"]),
        };
        samples.push("no such value".to_owned());
        samples.push(setting.default.to_owned());
        samples
    }

    /// Whether the effect of a setting can be seen.
    type Shows = fn(&Settings) -> bool;

    /// What setting it to this value changes, for each setting that a session acts on.
    const EFFECTS: &[(&str, &str, Shows)] = &[
        ("client_min_messages", "error", |s| {
            !s.knobs.tells(Severity::Warning)
        }),
        ("client_min_messages", "debug1", |s| {
            s.knobs.tells(Severity::Notice)
        }),
        ("default_transaction_isolation", "read committed", |s| {
            s.knobs.default_isolation == Isolation::ReadCommitted
        }),
        ("default_transaction_read_only", "on", |s| {
            s.knobs.default_read_only
        }),
        ("default_transaction_deferrable", "on", |s| {
            s.knobs.default_deferrable
        }),
        ("early_answer", "off", |s| !s.knobs.early_answer),
        ("read_policy", "pessimistic", |s| s.knobs.locks_reads),
        ("pg_stat_statements.track", "none", |s| {
            s.knobs.statement_rows == UNCOUNTED
        }),
        ("admission_potential", "20", |s| {
            s.knobs.admission.potential_max_percent == 20
        }),
        ("admission_wait", "3ms", |s| {
            s.knobs.admission.wait_us == 3_000
        }),
        ("idle_in_transaction_session_timeout", "7ms", |s| {
            s.knobs.idle_in_transaction_timeout_us == 7_000
        }),
        ("idle_session_timeout", "7ms", |s| {
            s.knobs.idle_timeout_us == 7_000
        }),
        ("in_doubt_timeout", "7ms", |s| {
            s.knobs.in_doubt_timeout_us == 7_000
        }),
        ("lock_timeout", "7ms", |s| s.knobs.lock_timeout_us == 7_000),
        ("log_min_duration_statement", "7ms", |s| {
            s.knobs.log_min_us == 7_000
        }),
        ("statement_timeout", "7ms", |s| {
            s.knobs.statement_timeout_us == 7_000
        }),
        ("synchronous_commit", "off", |s| !s.knobs.synchronous_commit),
        ("TimeZone", "europe/berlin", |s| {
            s.zone_name() == "Europe/Berlin"
        }),
    ];

    /// A golden script.
    const OF_TXN: &str = include_str!("../testdata/settings_of_txn");

    /// A test that measures what statements hold.
    const OF_MEMORY: &str = include_str!("../../node/tests/statement_memory.rs");
    const OF_SCHEMAS: &str = include_str!("../../../test/sql/pg_compat_schemas.slt");
    const OF_ROWS: &str = include_str!("../../../test/sql/pg_compat_row_security.slt");

    const OF_INTERVALS: &str = include_str!("../../../test/sql/pg_compat_interval_style.slt");

    const OF_TRIGGERS: &str = include_str!("../../../test/sql/pg_compat_triggers_off.slt");

    const OF_FUNCTIONS: &str = include_str!("../../../test/sql/pg_compat_functions_settings.slt");

    /// Settings whose effect is shown by a golden script, or by another test.
    const ELSEWHERE: &[(&str, &str)] = &[
        ("transaction_isolation", OF_TXN),
        ("transaction_read_only", OF_TXN),
        ("transaction_deferrable", OF_TXN),
        ("statement_memory", OF_MEMORY),
        ("search_path", OF_SCHEMAS),
        ("row_security", OF_ROWS),
        ("check_function_bodies", OF_FUNCTIONS),
        ("IntervalStyle", OF_INTERVALS),
        ("session_replication_role", OF_TRIGGERS),
    ];

    /// Every setting acts, or takes no other value than the one that tells the truth.
    #[test]
    fn every_setting_acts_or_is_refused() {
        for setting in SETTINGS {
            let name = setting.name;
            let mut values = std::collections::BTreeSet::new();
            for sample in samples(setting) {
                let mut settings = Settings::default();
                match settings.set(name, Some(&sample), false, false) {
                    Err(error) => {
                        assert!(error.fields().message.contains(name), "{name}: {error}");
                        assert_eq!(settings.get(name), Some(setting.default));
                    }
                    Ok(_) => drop(values.insert(settings.get(name).expect("set").to_owned())),
                }
            }
            let effects: Vec<_> = EFFECTS
                .iter()
                .filter(|(other, ..)| *other == name)
                .collect();
            if !matches!(
                setting.context,
                known::Context::Superuser | known::Context::User
            ) {
                assert!(values.is_empty(), "{name} is not the session's to change");
            } else if setting.is_fixed || values.len() == 1 {
                assert_eq!(
                    values.into_iter().collect::<Vec<_>>(),
                    [setting.default],
                    "{name}"
                );
            } else if setting.description.starts_with("Moot: ") {
                assert_eq!(
                    setting.kind,
                    known::Kind::Bool,
                    "{name}: there is nothing to act on"
                );
            } else if matches!(setting.kind, known::Kind::Encoding(_)) {
                // All values that are taken mean the same.
                assert!(!values.contains("x") && !values.contains(""), "{name}");
            } else if name == "extra_float_digits" {
                let all = ["1", "2", "3"].map(str::to_owned);
                assert_eq!(
                    values.into_iter().collect::<Vec<_>>(),
                    all,
                    "all mean: exactly"
                );
            } else if name == "default_tablespace" {
                let all = ["", "pg_default"].map(str::to_owned);
                assert_eq!(values.into_iter().collect::<Vec<_>>(), all, "there is one");
            } else if name == "application_name" {
                let mut settings = Settings::default();
                let set = settings.set(name, Some("x"), false, false);
                set.expect("any text");
                assert_eq!(settings.report(), [(name.to_owned(), "x".to_owned())]);
            } else if let Some((_, script)) = ELSEWHERE.iter().find(|(other, _)| *other == name) {
                let script = script.to_ascii_lowercase();
                assert!(
                    script.contains(&format!("set {} = ", name.to_ascii_lowercase())),
                    "{name} in its script"
                );
            } else {
                assert!(!effects.is_empty(), "{name}: what does it do?");
            }
            for (_, value, shows) in effects {
                let mut settings = Settings::default();
                settings.set(name, Some(value), false, false).expect(name);
                assert!(shows(&settings), "{name} = {value}");
            }
        }
    }
}
