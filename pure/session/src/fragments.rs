//! Statements of a program: their plans, whose names may be its variables, and its values.

use super::plans::Prepared;
use super::program::{Planned, ROWS, Under, loop_rows, unsupported};
use super::run::Start;
use super::statements::Counting;
use super::{Session, SessionCx};
use base::{Datum, OutColumn, RowBatch, SqlError, SqlState, Type};
use bind::{ParamName, PlanCx};
use parse::session::{DoBlock, SessionCommand};
use parse::{Kind, Statement};
use plan::{Plan, PlanKind};
use plpgsql::machine::{Columns, Host, Param, Rows, Run, own_type};
use plpgsql::program::Declared;
use std::cell::Cell;
use std::rc::Rc;

/// Longest text of an EXECUTE, in bytes: it is parsed in the step of the shard.
const TEXT_BYTES_MAX: usize = 64 << 10;

fn columns_of(columns: &[OutColumn]) -> Columns {
    let known = |ty| if ty == Type::Unknown { Type::Text } else { ty };
    let named = columns.iter().map(|it| (it.name.clone(), known(it.ty)));
    named.collect()
}

/// # Errors
/// 0A000 for statements that a program cannot have, 42601 for rows without a place and a place
/// without rows.
fn check(plan: &Plan, statement: &Statement, rows: Rows, dynamic: bool) -> Result<(), SqlError> {
    if matches!(statement.kind(), Kind::Copy(_)) {
        let message = "cannot COPY to/from client in PL/pgSQL";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    match &plan.kind {
        PlanKind::Session(
            SessionCommand::Set { .. }
            | SessionCommand::Reset(_)
            | SessionCommand::ShowSetting(_)
            | SessionCommand::Notify { .. },
        )
        | PlanKind::Run(_)
        | PlanKind::Ddl(_)
        | PlanKind::CreateAs(_)
        | PlanKind::Refresh(_)
        | PlanKind::Nothing(_)
        | PlanKind::Lock(_)
        | PlanKind::Constraints(_) => {}
        PlanKind::Session(SessionCommand::Do(_)) => {
            return Err(unsupported("DO in DO").hint("Use a block: BEGIN ... END."));
        }
        PlanKind::Session(_) | PlanKind::Savepoint(_) | PlanKind::Adopt(_) => {
            return Err(unsupported("this statement"));
        }
    }
    match (rows, plan.returns_rows) {
        (Rows::None, true) if !dynamic => {
            let message = "query has no destination for result data";
            let hint = "If you want to discard the results of a SELECT, use PERFORM instead.";
            let error = SqlError::new(SqlState::SYNTAX, message);
            Err(match matches!(statement.kind(), Kind::Call(_)) {
                true => unsupported("a CALL with results"),
                false => error.hint(hint),
            })
        }
        (Rows::First | Rows::Loop(_), false) => {
            let message = "INTO used with a command that cannot return data";
            Err(SqlError::new(SqlState::SYNTAX, message))
        }
        _ => Ok(()),
    }
}

/// Values as the session reads and writes them.
pub(super) struct Values<'a, 'b> {
    pub(super) session: &'a Session,
    pub(super) cx: &'a SessionCx<'b>,
}

impl Host for Values<'_, '_> {
    fn convert(&self, value: Datum, from: Type, to: Type) -> Result<Datum, SqlError> {
        let plain = |ty: Type| matches!(ty, Type::Text | Type::Varchar(_) | Type::Unknown);
        let value = match (value, to) {
            (Datum::Null, _) => return Ok(Datum::Null),
            (value, _) if from.base_name() == to.base_name() => value,
            (value @ Datum::Text(_), _) if plain(from) && plain(to) => value,
            (Datum::Int(number), Type::Numeric(_)) => Datum::Decimal(number.into()),
            (Datum::Int(number), Type::Float4 | Type::Float8) => Datum::Float(number as f64),
            (value @ Datum::Int(_), to) if to.is_integer() && from.is_integer() => {
                let text = base::text::to_string(from, &value);
                return base::text::parse(to, &text);
            }
            (Datum::Decimal(number), to) if to.is_integer() => {
                return base::text::parse(to, &number.round(0)?.to_string());
            }
            (Datum::Float(number), to) if to.is_integer() && number.is_finite() => {
                let text = format!("{:.0}", number.round_ties_even());
                return base::text::parse(to, &text);
            }
            (Datum::Bool(value), to) if plain(to) => {
                Datum::Text(if value { "true" } else { "false" }.into())
            }
            (value, to) => {
                let text = self.text(&value, from)?;
                let read = self.session.read_text(self.cx, to, &text)?;
                return base::text::fit(to, read);
            }
        };
        base::text::fit(to, value)
    }

    fn text(&self, value: &Datum, ty: Type) -> Result<String, SqlError> {
        let columns = [OutColumn {
            name: String::new(),
            ty,
            table: 0,
            attribute: 0,
        }];
        let mut batch = RowBatch::new(1);
        batch.push([value.clone()]);
        self.session.put_names(self.cx, &columns, &[], &mut batch)?;
        let named = batch.datums.pop().unwrap_or_default();
        // What the catalog names is a text now.
        Ok(match named.as_str().filter(|_| named != *value) {
            Some(text) => text.to_owned(),
            None => base::text::to_string(ty, &named),
        })
    }
}

impl Session {
    /// The types of the variables of a program.
    pub(super) fn variable_types(
        &mut self,
        cx: &mut SessionCx<'_>,
        block: &DoBlock,
    ) -> Result<Vec<Result<Type, Option<Columns>>>, SqlError> {
        let mut types: Vec<Result<Type, Option<Columns>>> = Vec::new();
        for variable in &block.program.variables {
            if let Some(name) = &variable.type_name
                && let Ok(database) = self.database(cx)
                && database
                    .domains
                    .keys()
                    .any(|known| base::full_name::own(known) == name)
            {
                return Err(
                    unsupported("a variable of a domain").hint("Use the type below the domain.")
                );
            }
            let ty = match (&variable.declared, own_type(&variable.declared)) {
                (_, Some(own)) => Ok(own),
                (Declared::Like(var), _) => types[*var].clone(),
                (Declared::Record, _) => Err(None),
                (Declared::Named(fragment) | Declared::Column(fragment), _) => {
                    let columns = self.fragment_columns(cx, block, *fragment)?;
                    Ok(columns.first().map_or(Type::Text, |(_, ty)| *ty))
                }
                (Declared::Row(fragment), _) => {
                    Err(Some(self.fragment_columns(cx, block, *fragment)?))
                }
                (Declared::Integer | Declared::Text | Declared::Boolean, None) => Ok(Type::Text),
            };
            types.push(ty);
        }
        Ok(types)
    }

    fn fragment_columns(
        &mut self,
        cx: &mut SessionCx<'_>,
        block: &DoBlock,
        fragment: usize,
    ) -> Result<Columns, SqlError> {
        let prepared = self.prepare_statement(cx, &block.statements[fragment], &[])?;
        let plan = prepared.plan.as_ref();
        Ok(plan.map_or_else(Columns::default, |plan| columns_of(&plan.columns)))
    }

    pub(super) fn run_fragment(
        &mut self,
        cx: &mut SessionCx<'_>,
        run: Run,
    ) -> Result<(), SqlError> {
        let Some(program) = &self.program else {
            return Ok(());
        };
        let statement = program.block.statements[run.fragment].clone();
        let missing = run.missing.clone();
        let known = program.plans[run.fragment].clone();
        let same = |(names, _): &Planned| {
            let mut both = names.iter().zip(&run.params);
            names.len() == run.params.len()
                && both.all(|((name, ty), param)| {
                    *ty == param.ty && name.name == param.name && name.qualifier == param.qualifier
                })
        };
        let site = self.site(cx);
        let known = known.filter(|known| {
            let (_, prepared) = known;
            same(known)
                && prepared.is_fresh(cx.catalog.version, &site)
                && prepared.is_counted(cx.statistics)
        });
        let prepared = match known {
            Some((_, prepared)) => prepared,
            None => {
                let names = names_of(&run.params);
                let planned = self.plan_named(cx, &statement, &names);
                let planned = planned.map_err(|error| match (missing, error.state()) {
                    (Some(missing), SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE) => {
                        missing
                    }
                    (_, _) => error,
                })?;
                if let Some(program) = &mut self.program {
                    program.plans[run.fragment] = Some((names, planned.clone()));
                }
                planned
            }
        };
        self.run_planned(cx, prepared, run, false)
    }

    pub(super) fn run_text(
        &mut self,
        cx: &mut SessionCx<'_>,
        text: &str,
        run: Run,
    ) -> Result<(), SqlError> {
        if text.len() > TEXT_BYTES_MAX {
            let message = format!("the text of EXECUTE has {} bytes", text.len());
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message)
                .detail(format!("It may have at most {TEXT_BYTES_MAX}.")));
        }
        let mut statements = parse::parse(text)?;
        let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
            return Err(unsupported("an EXECUTE of none or several statements")
                .hint("Use one EXECUTE for each statement."));
        };
        if is_of_transactions(&statement) {
            let message = "EXECUTE of transaction commands is not implemented";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let names = names_of(&run.params);
        let prepared = self.plan_named(cx, &statement, &names)?;
        self.run_planned(cx, prepared, run, true)
    }

    fn run_planned(
        &mut self,
        cx: &mut SessionCx<'_>,
        prepared: Rc<Prepared>,
        run: Run,
        dynamic: bool,
    ) -> Result<(), SqlError> {
        let (Some(plan), Some(statement)) = (&prepared.plan, &prepared.statement) else {
            return Ok(());
        };
        check(plan, statement, run.rows, dynamic)?;
        let given = if dynamic { run.params.len() } else { 0 };
        if statement.parameters() as usize > given {
            let message = format!("there is no parameter ${}", given + 1);
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message));
        }
        let counts = matches!(plan.kind, PlanKind::Run(_));
        let has_rows = counts && plan.returns_rows;
        let name = match run.rows {
            Rows::Loop(of) => loop_rows(of),
            Rows::None | Rows::Dropped | Rows::First => ROWS.to_owned(),
        };
        let until = self.program.as_ref().and_then(|program| program.until);
        let under = Under::Statement {
            rows: run.rows,
            columns: columns_of(&plan.columns),
            has_rows,
            counts,
            writes: plan.writes,
        };
        if let Some(program) = &mut self.program {
            program.under = under;
            program.tag = None;
            program.batches.clear();
        }
        let params = run.params.into_iter().map(|param| param.value);
        let mut params: Vec<Datum> = params.collect();
        params.truncate(plan.params.len());
        let start = Start {
            prepared,
            params: params.into(),
            formats: cx.plans.text.clone(),
            describe: false,
            rows_max: 0,
            portal: None,
            last: false,
            many: false,
            declares: has_rows.then(|| super::cursors::keeping(name)),
            until,
        };
        self.start_of_program(cx, start);
        Ok(())
    }

    /// Plans a statement whose names may be parameters.
    fn plan_named(
        &mut self,
        cx: &mut SessionCx<'_>,
        statement: &Statement,
        names: &[(ParamName, Type)],
    ) -> Result<Rc<Prepared>, SqlError> {
        if names.is_empty() {
            return self.prepare_statement(cx, statement, &[]);
        }
        cx.plans.count_planned();
        self.note_temporary(statement);
        let database = self.database(cx)?;
        let (id, site) = (database.id, self.site(cx));
        let (names, types): (Vec<ParamName>, Vec<Type>) = names.iter().cloned().unzip();
        let statistics = &*cx.statistics;
        let plan_cx = PlanCx {
            catalog: cx.catalog,
            database,
            param_types: &types,
            param_names: &names,
            zone: &site.zone,
            path: &site.path,
            viewer: site.viewer,
            rows: &|table| statistics.rows(id, table),
            values: &|table| statistics.values(id, table),
            paths: Default::default(),
        };
        let plan = crate::preparing::plan(cx.barrier, statement, &plan_cx)?;
        Ok(Rc::new(Prepared {
            leftovers: None,
            text: statement.text().into(),
            statement: Some(statement.clone()),
            declared: types.into(),
            plan: Some(plan),
            counted: cx.statistics.version(id),
            database: id,
            allowed: Cell::default(),
            counting: Counting::default(),
        }))
    }
}

fn names_of(params: &[Param]) -> Vec<(ParamName, Type)> {
    let named = params.iter().map(|param| {
        let name = ParamName {
            qualifier: param.qualifier.clone(),
            name: param.name.clone(),
        };
        (name, param.ty)
    });
    named.collect()
}

fn is_of_transactions(statement: &Statement) -> bool {
    matches!(
        statement.kind(),
        Kind::Session(
            SessionCommand::Begin(_)
                | SessionCommand::Start(_)
                | SessionCommand::Commit { .. }
                | SessionCommand::Rollback { .. }
                | SessionCommand::Savepoint(_)
                | SessionCommand::Release(_)
                | SessionCommand::RollBackTo(_),
        )
    )
}
