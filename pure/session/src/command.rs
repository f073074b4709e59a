//! Statements that the session itself runs: settings, SHOW, PREPARE and the like.

use super::acting::{ROLE, SESSION_ROLE, is_acting};
use super::block::Modes;
use super::lists::Noted;
use super::run::Start;
use super::settings::isolation_name;
use super::{Block, Session, SessionCx, errors};
use crate::message::SettingChange;
use base::{Datum, Position, RowBatch, SqlError, SqlState, Type};
use catalog::Execution;
use parse::Statement;
use parse::session::{Isolation, SessionCommand, TxnModes};
use pg_catalog::settings::{self as known, SETTINGS};
use plan::{Plan, PlanKind};
use std::rc::Rc;
use std::sync::Arc;
use wire::Tag;

impl Session {
    pub(super) fn command(
        &mut self,
        cx: &mut SessionCx<'_>,
        plan: &Plan,
        command: &SessionCommand,
        start: Start,
    ) {
        let result = match command {
            SessionCommand::Begin(modes) => return self.begin(cx, *modes, "BEGIN"),
            SessionCommand::Start(modes) => return self.begin(cx, *modes, "START TRANSACTION"),
            SessionCommand::Commit { chain } => return self.commit(cx, *chain),
            SessionCommand::Rollback { chain } => return self.rollback_command(cx, *chain),
            SessionCommand::Savepoint(name) => return self.savepoint(cx, name, start),
            SessionCommand::Release(name) => return self.release_savepoint(cx, name),
            SessionCommand::RollBackTo(name) => return self.roll_back_to(cx, name, start),
            SessionCommand::SetTransaction(modes) => return self.set_transaction(cx, *modes),
            SessionCommand::Execute { name, args } => {
                return self.execute_prepared(cx, name, args, start);
            }
            SessionCommand::Declare(declaration) => return self.declare(cx, declaration, start),
            SessionCommand::Fetch {
                name,
                direction,
                moves,
            } => return self.fetch(cx, (name, *direction, *moves), &start),
            SessionCommand::Close(name) => self.close_cursors(cx, name.as_deref(), &start),
            SessionCommand::Listen(channel) => self.listen(cx, channel),
            SessionCommand::Unlisten(channel) => self.unlisten(cx, channel.as_deref()),
            SessionCommand::Notify { channel, payload } => self.notify(cx, channel, payload),
            SessionCommand::SetSessionModes(modes) => self.set_session_modes(cx, *modes),
            SessionCommand::Set { name, value, local } if is_acting(name) => {
                self.set_acting(cx, name, value.as_deref(), *local)
            }
            SessionCommand::Reset(Some(name)) if is_acting(name) => {
                self.set_acting(cx, name, None, false).map(|_| "RESET")
            }
            SessionCommand::Set { name, value, local } => {
                self.set(cx, name, value.as_deref(), *local)
            }
            SessionCommand::Reset(name) => self.reset(cx, name.as_deref()),
            SessionCommand::ShowSetting(name) => {
                return match self.show(cx, plan, name.as_deref()) {
                    Ok(rows) => self.give_rows(&start, rows, Tag::Word("SHOW")),
                    Err(error) => self.fail(cx, error, Position(0)),
                };
            }
            SessionCommand::ShowTransactionCost => {
                let rows = self.transaction_cost();
                return self.give_rows(&start, rows, Tag::Word("SHOW"));
            }
            SessionCommand::Do(block) => return self.do_block(cx, block, start),
            SessionCommand::Discard => return self.discard(cx),
            SessionCommand::DiscardSequences => {
                self.forget_sequences();
                Ok("DISCARD SEQUENCES")
            }
            SessionCommand::DiscardTemporary => return self.discard_temporary(cx, "DISCARD TEMP"),
            SessionCommand::Deallocate(name) => self.deallocate(name.as_deref()),
            SessionCommand::Prepare {
                name,
                types,
                statement,
            } => self.sql_prepare(cx, name, types, statement),
        };
        match result {
            Ok(tag) => self.complete(Tag::Word(tag)),
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    /// A fact about the session's database that SHOW prints like a setting.
    fn database_fact(&self, cx: &SessionCx<'_>, name: &str) -> Option<String> {
        let database = cx.catalog.databases.get(&*self.database)?;
        let fact = match name {
            "protocol" => database.protocol.name(),
            "execution" => match database.execution {
                Execution::Interleaved => "interleaved",
                Execution::Serial => "serial",
            },
            _ => return None,
        };
        Some(fact.to_owned())
    }

    /// The value of a setting as SHOW prints it; `None`: there is no such setting.
    pub(super) fn setting(&self, name: &str) -> Option<String> {
        let lower = known::lookup(name)
            .map_or(name, |setting| setting.name)
            .to_ascii_lowercase();
        let modes = self.present_modes();
        Some(match &*lower {
            "transaction_isolation" => isolation_name(modes.asked).to_owned(),
            "transaction_read_only" => on_off(modes.read_only).to_owned(),
            "transaction_deferrable" => on_off(modes.deferrable).to_owned(),
            "session_authorization" => self.acting.session.to_string(),
            "is_superuser" => on_off(self.acting.superuser).to_owned(),
            "role" => match self.settings.get(ROLE) {
                Some(_) => self.acting.current.to_string(),
                None => "none".to_owned(),
            },
            SESSION_ROLE => return None,
            "port" if self.link.ends.is_some() => {
                let ends = self.link.ends.as_ref();
                ends.map(|ends| ends.server_port.to_string())
                    .unwrap_or_default()
            }
            "max_connections" if self.link.connections_max > 0 => {
                self.link.connections_max.to_string()
            }
            _ => self.settings.get(&lower)?.to_owned(),
        })
    }

    /// Updates the facts that statements see from settings and modes.
    pub(super) fn refresh_facts(&mut self) {
        if self.facts_modes == Some(self.modes) {
            return;
        }
        let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut settings: Vec<(String, String)> = self
            .settings
            .overrides()
            .filter(|(name, _)| !matches!(*name, ROLE | SESSION_ROLE))
            .map(|(name, value)| text(name, value))
            .collect();
        let Modes {
            isolation: _,
            asked,
            read_only,
            deferrable,
        } = self.modes;
        if asked != Isolation::Serializable {
            settings.push(text("transaction_isolation", isolation_name(asked)));
        }
        if read_only {
            settings.push(text("transaction_read_only", "on"));
        }
        if deferrable {
            settings.push(text("transaction_deferrable", "on"));
        }
        // Values that come from the connection instead of the list.
        let known = [
            ("port", self.link.ends.is_some()),
            ("max_connections", self.link.connections_max > 0),
            (
                "session_authorization",
                self.acting.session != self.acting.current,
            ),
            ("is_superuser", !self.acting.superuser),
            ("role", self.settings.get(ROLE).is_some()),
        ];
        for (name, _) in known.into_iter().filter(|(_, known)| *known) {
            settings.extend(self.setting(name).map(|value| (name.to_owned(), value)));
        }
        let facts = Arc::make_mut(&mut self.facts);
        facts.user = self.acting.current.to_string();
        facts.pid = self.pid;
        facts.ends.clone_from(&self.link.ends);
        facts.settings = settings;
        facts.defaults = self.settings.defaults();
        self.facts_modes = Some(self.modes);
    }

    /// The transaction has committed: SET LOCAL ends.
    pub(super) fn keep_settings(&mut self) {
        if self.settings.commit() {
            self.settings_changed();
        }
    }

    /// The transaction has rolled back: SET is undone.
    pub(super) fn restore_settings(&mut self) {
        if self.settings.roll_back() {
            self.settings_changed();
        }
    }

    pub(super) fn settings_changed(&mut self) {
        self.facts_modes = None;
        self.forget_role();
        if self.txn.is_some() {
            self.refresh_facts();
        }
    }

    fn set(
        &mut self,
        cx: &SessionCx<'_>,
        name: &str,
        value: Option<&str>,
        local: bool,
    ) -> Result<&'static str, SqlError> {
        self.may_set(cx, name)?;
        let in_txn = self.block != Block::None;
        let lower = known::lookup(name)
            .map_or(name, |setting| setting.name)
            .to_ascii_lowercase();
        if let "transaction_isolation" | "transaction_read_only" | "transaction_deferrable" =
            &*lower
        {
            self.set_mode(&lower, value)?;
            return Ok("SET");
        }
        if local && !in_txn {
            self.warn(
                SqlState::NO_ACTIVE_TXN,
                "SET LOCAL can only be used in transaction blocks",
            );
            known::validate(name, value.unwrap_or(""))?;
            return Ok("SET");
        }
        self.settings.set(name, value, in_txn, local)?;
        self.settings_changed();
        Ok("SET")
    }

    /// Takes settings that a statement changed by `set_config`, which has checked them.
    pub(super) fn take_settings(&mut self, changes: Vec<SettingChange>) {
        let in_txn = self.block != Block::None;
        for SettingChange { name, value, local } in changes {
            match &*name {
                // These have changed already.
                "transaction_isolation" | "transaction_deferrable" => {}
                "transaction_read_only" if in_txn => self.modes.read_only = value == "on",
                "transaction_read_only" => {}
                // A setting of the user's own stays, without a value.
                _ if local && !in_txn && self.settings.get(&name).is_some() => {}
                _ => {
                    let kept = if local && !in_txn { "" } else { &*value };
                    let set = self.settings.set(&name, Some(kept), in_txn, local);
                    set.expect("a value that was checked");
                }
            }
        }
        self.settings_changed();
    }

    /// `SET transaction_isolation = ...` means SET TRANSACTION.
    fn set_mode(&mut self, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        let defaults = self.default_modes();
        let mut modes = TxnModes::default();
        let checked = value
            .map(|value| known::validate(name, value))
            .transpose()?;
        if name == "transaction_isolation" {
            let asked = checked.as_deref().map(super::settings::isolation);
            modes.isolation = Some(asked.unwrap_or(defaults.isolation));
        } else if name == "transaction_deferrable" {
            modes.deferrable = Some(checked.map_or(defaults.deferrable, |value| value == "on"));
        } else {
            modes.read_only = Some(checked.map_or(defaults.read_only, |value| value == "on"));
        }
        if self.block == Block::None {
            let text = "SET TRANSACTION can only be used in transaction blocks";
            self.warn(SqlState::NO_ACTIVE_TXN, text);
            return Ok(());
        }
        self.set_modes(modes)
    }

    fn set_session_modes(
        &mut self,
        cx: &SessionCx<'_>,
        modes: TxnModes,
    ) -> Result<&'static str, SqlError> {
        if let Some(isolation) = modes.isolation {
            self.set(
                cx,
                "default_transaction_isolation",
                Some(isolation_name(isolation)),
                false,
            )?;
        }
        if let Some(read_only) = modes.read_only {
            self.set(
                cx,
                "default_transaction_read_only",
                Some(on_off(read_only)),
                false,
            )?;
        }
        if let Some(deferrable) = modes.deferrable {
            let name = "default_transaction_deferrable";
            self.set(cx, name, Some(on_off(deferrable)), false)?;
        }
        Ok("SET")
    }

    fn reset(&mut self, cx: &SessionCx<'_>, name: Option<&str>) -> Result<&'static str, SqlError> {
        match name {
            Some(name) => drop(self.set(cx, name, None, false)?),
            None => {
                self.settings.reset_all(self.block != Block::None);
                self.settings_changed();
            }
        }
        Ok("RESET")
    }

    fn show(
        &self,
        cx: &SessionCx<'_>,
        plan: &Plan,
        name: Option<&str>,
    ) -> Result<RowBatch, SqlError> {
        let mut rows = RowBatch::new(plan.columns.len());
        match name {
            Some(name) => {
                let value = self.setting(name).or_else(|| self.database_fact(cx, name));
                let value = value.ok_or_else(|| parse::show::unknown_to_show(name))?;
                rows.push([Datum::from(value)]);
            }
            None => {
                for setting in SETTINGS {
                    let value = self.setting(setting.name).unwrap_or_default();
                    rows.push([
                        setting.name.into(),
                        value.into(),
                        setting.description.into(),
                    ]);
                }
            }
        }
        Ok(rows)
    }

    fn discard(&mut self, cx: &mut SessionCx<'_>) {
        if self.block != Block::None {
            let message = "DISCARD ALL cannot run inside a transaction block";
            let error = SqlError::new(SqlState::ACTIVE_TXN, message);
            return self.fail(cx, error, Position(0));
        }
        self.close_portals();
        self.cursors.clear();
        self.prepared.clear();
        self.noted.clear();
        self.settings.keep(ROLE, None, false, false);
        self.settings.keep(SESSION_ROLE, None, false, false);
        self.settings.reset_all(false);
        self.settings_changed();
        self.leave_others(cx);
        self.forget_sequences();
        self.discard_temporary(cx, "DISCARD ALL");
    }

    /// The session has drawn no number from a sequence, for `currval` and `lastval`.
    fn forget_sequences(&mut self) {
        let facts = Arc::make_mut(&mut self.facts);
        facts.currval.clear();
        facts.drawn_last = None;
    }

    fn deallocate(&mut self, name: Option<&str>) -> Result<&'static str, SqlError> {
        match name {
            None => {
                self.prepared.clear();
                self.noted.clear();
                Ok("DEALLOCATE ALL")
            }
            Some(name) => match self.prepared.remove(name) {
                Some(_) => {
                    self.noted.remove(name);
                    Ok("DEALLOCATE")
                }
                None => Err(errors::no_statement(name)),
            },
        }
    }

    fn sql_prepare(
        &mut self,
        cx: &mut SessionCx<'_>,
        name: &str,
        types: &[Type],
        statement: &Statement,
    ) -> Result<&'static str, SqlError> {
        if self.prepared.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_STATEMENT, message));
        }
        let prepared = self.prepare_statement(cx, statement, types)?;
        if !matches!(
            prepared.plan.as_ref().map(|plan| &plan.kind),
            Some(PlanKind::Run(_))
        ) {
            let message = "only queries and data changes can be prepared";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        let noted = Noted {
            at: cx.now,
            text: Some(statement.source().0.clone()),
        };
        self.noted.insert(name.to_owned(), noted);
        self.prepared.insert(name.to_owned(), prepared);
        Ok("PREPARE")
    }

    fn execute_prepared(
        &mut self,
        cx: &mut SessionCx<'_>,
        name: &str,
        args: &[Datum],
        start: Start,
    ) {
        match self.bind_arguments(cx, name, args) {
            Ok((prepared, params)) => self.start(
                cx,
                Start {
                    prepared,
                    params,
                    ..start
                },
            ),
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    fn bind_arguments(
        &mut self,
        cx: &mut SessionCx<'_>,
        name: &str,
        args: &[Datum],
    ) -> Result<(Rc<super::Prepared>, exec::port::Params), SqlError> {
        let prepared = self.find(name)?.clone();
        let prepared = self.fresh(cx, name, prepared)?;
        let plan = prepared
            .plan
            .as_ref()
            .filter(|plan| matches!(plan.kind, PlanKind::Run(_)));
        let types = &plan.ok_or_else(|| errors::no_statement(name))?.params;
        if types.len() != args.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let detail = format!(
                "Expected {} parameters but got {}.",
                types.len(),
                args.len()
            );
            return Err(SqlError::new(SqlState::SYNTAX, message).detail(detail));
        }
        let params: Result<Vec<Datum>, SqlError> = types
            .iter()
            .zip(args)
            .map(|(ty, arg)| match arg.as_str() {
                Some(text) => self.read_text(cx, *ty, text),
                None => argument(*ty, arg),
            })
            .collect();
        Ok((prepared, params?.into()))
    }
}

/// An argument of EXECUTE as a value of the parameter's type.
fn argument(ty: Type, arg: &Datum) -> Result<Datum, SqlError> {
    let own = match (ty, arg) {
        (_, Datum::Null) => return Ok(Datum::Null),
        (Type::Numeric(_), Datum::Int(number)) => Datum::Decimal((*number).into()),
        (Type::Float4 | Type::Float8, Datum::Int(_) | Datum::Decimal(_) | Datum::Large(_)) => {
            Datum::Float(arg.as_float().unwrap_or_default())
        }
        (ty, Datum::Decimal(number)) if ty.is_integer() => {
            return base::text::parse(ty, &number.round(0)?.to_string());
        }
        (ty, Datum::Large(number)) if ty.is_text() => number.to_string().into(),
        (ty, Datum::Int(number)) if ty.is_text() => number.to_string().into(),
        (ty, Datum::Decimal(number)) if ty.is_text() => number.to_string().into(),
        _ => arg.clone(),
    };
    base::text::fit(ty, own)
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
