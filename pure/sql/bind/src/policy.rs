//! Row security: the conditions of policies become part of the statements that they concern.
//!
//! ```text
//! rows that are read      Filter { secure } over the table, in the statement's own query
//! rows that are written   one value of the new row becomes
//!                         CASE WHEN condition THEN value ELSE fails END
//! ```
//!
//! So an executor knows nothing of policies. What a secure filter keeps away is computed by nothing
//! above it: the planner lets only those conditions pass it that cannot fail
//! (docs/row_security.md).

use super::dml::BoundAssignment;
use super::rel::{Call, Rel};
use super::scope::{Scope, table_scope};
use super::view::Bound;
use super::{Binder, Conflict, ConflictAction, conjuncts, place_calls, unsupported};
use base::full_name::own;
use base::{Datum, SqlError, SqlState, Type};
use catalog::{Policy, PolicyCommand, Table, View};
use expr::{Expr, Func, Volatility, walk};
use parse::{Statement, expression};
use rights::{RoleId, Target};
use std::sync::Arc;

/// The policies of a table that concern a statement.
struct Guard {
    table: Arc<Table>,
    /// Those for the role, by name.
    policies: Vec<Arc<Policy>>,
}

impl Guard {
    /// Those for a command.
    fn of(&self, command: PolicyCommand) -> impl Iterator<Item = &Arc<Policy>> {
        let fits = move |policy: &&Arc<Policy>| {
            policy.command == PolicyCommand::All || policy.command == command
        };
        self.policies.iter().filter(fits)
    }

    /// Whether USING says of all rows what WITH CHECK says.
    fn is_checked_before(&self, command: PolicyCommand) -> bool {
        self.of(command).all(|policy| {
            let texts = (policy.using.as_ref(), policy.check.as_ref());
            matches!(texts, (Some(using), Some(check)) if using.text == check.text)
                || policy.check.is_none()
        })
    }

    /// Whether a condition for a command reads one of these columns.
    fn reads(&self, command: PolicyCommand, columns: &[&str]) -> bool {
        self.of(command).any(|policy| {
            let conditions = policy.using.iter().chain(&policy.check);
            let mut used = conditions.filter_map(|one| one.use_of(&self.table.name));
            used.any(|used| {
                columns
                    .iter()
                    .any(|name| used.columns.iter().any(|c| c == name))
            })
        })
    }
}

/// Which rows a check is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    /// New ones.
    New,
    /// Those that ON CONFLICT has met.
    Met,
    /// Those that a MERGE is to change.
    Target,
}

/// A check of rows by the policies for a command.
type Check = (PolicyCommand, Checked);

/// Why a row cannot be written.
#[derive(Clone)]
pub(super) struct Refusal {
    pub(super) message: String,
    /// A view with a check option refuses it, not a policy.
    pub(super) by_view: bool,
}

/// Conditions over the row of a table, each with the error of a row for which it is not true.
pub(super) struct Checks {
    pub(super) conditions: Vec<(Expr, Refusal)>,
    /// `Expr::Subquery(n)` in them stands for the n-th.
    pub(super) calls: Vec<Call<Rel>>,
}

impl Checks {
    /// The same over rows of which the table's columns are computed so.
    fn over(mut self, row: &[Expr]) -> Checks {
        let conditions = self.conditions.iter_mut().map(|(condition, _)| condition);
        conditions.for_each(|condition| substitute(condition, row));
        for call in &mut self.calls {
            call.kind
                .outer_exprs_mut()
                .for_each(|expr| substitute(expr, row));
        }
        self
    }

    /// Numbers its calls from `first` on.
    fn numbered(mut self, first: u32) -> Checks {
        let shift = |expr: &mut Expr| {
            walk::map(expr, &mut |node| {
                if let Expr::Subquery(number, _) = node {
                    *number += first;
                }
            });
        };
        self.conditions
            .iter_mut()
            .for_each(|(condition, _)| shift(condition));
        for call in &mut self.calls {
            call.kind.outer_exprs_mut().for_each(shift);
        }
        self
    }

    /// The rows with the values of the calls, and the conditions over them.
    fn applied(self, rel: Rel) -> (Rel, Vec<(Expr, Refusal)>) {
        let width = rel.width();
        let mut conditions = self.conditions;
        conditions
            .iter_mut()
            .for_each(|(condition, _)| place_calls(condition, width));
        (rel.applied(self.calls), conditions)
    }
}

/// A value that is there only where the conditions are true.
fn only_if(conditions: Vec<(Expr, Refusal)>, value: Expr) -> Expr {
    conditions
        .into_iter()
        .rev()
        .fold(value, |value, (condition, refusal)| {
            let ty = value.ty();
            let text = Expr::Const(Datum::Text(refusal.message.into()), Type::Text);
            let mut args = vec![text];
            if refusal.by_view {
                args.push(Expr::bool(true));
            }
            Expr::Case {
                arms: vec![(condition, value)],
                otherwise: Box::new(Expr::Call(Func::Refuse, args, ty)),
                ty,
            }
        })
}

/// Puts `row[i]` for column `i`.
fn substitute(expr: &mut Expr, row: &[Expr]) {
    match expr {
        Expr::Column(index, _) => *expr = row[*index as usize].clone(),
        other => other.each_child_mut(&mut |child| substitute(child, row)),
    }
}

fn columns(table: &Table) -> Vec<Expr> {
    let columns = table.columns.iter().enumerate();
    columns
        .map(|(i, column)| Expr::Column(i as u32, column.ty))
        .collect()
}

/// A column of which statements give values.
fn given_column(table: &Table) -> usize {
    let mut columns = table.columns.iter();
    columns
        .position(|column| column.generated.is_none() && !column.hidden)
        .unwrap_or(0)
}

/// The table at the left end of the rows that a statement changes.
fn target_mut(mut rel: &mut Rel) -> &mut Rel {
    loop {
        rel = match rel {
            Rel::Filter { input, .. } | Rel::Apply { input, .. } | Rel::Project { input, .. } => {
                input
            }
            Rel::Join { left, .. } | Rel::Lateral { left, .. } => left,
            other => return other,
        };
    }
}

impl Binder<'_> {
    /// The policies of a table that concern whoever reads or changes it here: the statement's role,
    /// or the owner of the view around it. `None`: all rows are there.
    ///
    /// # Errors
    /// 42501 with `row_security = off`.
    fn guard(&self, table: &Arc<Table>) -> Result<Option<Guard>, SqlError> {
        let database = self.cx.database;
        if database.row_security.is_empty() || self.is_new_view() {
            return Ok(None);
        }
        let rights = &self.cx.catalog.rights;
        let role = match self.by() {
            Some(by) => rights.owner(&Target::Relation(by)),
            None => self.cx.viewer.role,
        };
        let guarded = self.cx.catalog.rows_guarded(database, table.id, role);
        let Some((security, is_owner)) = guarded else {
            return Ok(None);
        };
        if !self.cx.viewer.row_security {
            let message = format!(
                "query would be affected by row-level security policy for table \"{}\"",
                table.name
            );
            let error = SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message);
            return Err(match is_owner {
                true => error.hint(
                    "To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW \
                     LEVEL SECURITY.",
                ),
                false => error,
            });
        }
        let owner = self.cx.catalog.owner_of_database(database);
        let groups = rights.groups(role, owner);
        let concerns = |policy: &&Arc<Policy>| {
            let mut roles = policy.roles.iter();
            roles.any(|of| *of == RoleId::PUBLIC || groups.contains(of))
        };
        Ok(Some(Guard {
            table: table.clone(),
            policies: security.policies.iter().filter(concerns).cloned().collect(),
        }))
    }

    /// Whether policies concern who runs the statement.
    ///
    /// # Errors
    /// 42501 with `row_security = off`.
    pub fn is_guarded(&self, table: &Arc<Table>) -> Result<bool, SqlError> {
        Ok(self.guard(table)?.is_some())
    }

    /// The rows of `rel`, which is of this table, that the policies for these commands show.
    ///
    /// # Errors
    /// 42501 with `row_security = off`; 42P17 for a policy that reads its own table.
    pub fn guarded(
        &mut self,
        table: &Arc<Table>,
        rel: Rel,
        commands: &[PolicyCommand],
    ) -> Result<Rel, SqlError> {
        let Some(guard) = self.guard(table)? else {
            return Ok(rel);
        };
        let (mut conditions, calls) = self.over_row(&guard, |binder| {
            let mut conditions = Vec::new();
            let mut seen: Vec<Vec<u32>> = Vec::new();
            for command in commands {
                let ids: Vec<u32> = guard.of(*command).map(|policy| policy.id).collect();
                if seen.contains(&ids) {
                    continue;
                }
                seen.push(ids);
                let (permissive, restrictive) = binder.combined(&guard, *command, true)?;
                let restrictive = restrictive.into_iter().map(|(_, condition)| condition);
                let all = restrictive.chain([permissive]);
                all.for_each(|condition| conjuncts(condition, &mut conditions));
            }
            Ok(conditions)
        })?;
        let width = rel.width();
        conditions
            .iter_mut()
            .for_each(|condition| place_calls(condition, width));
        let has_calls = !calls.is_empty();
        let rel = Rel::Filter {
            input: Box::new(rel.applied(calls)),
            conditions,
            secure: true,
        };
        Ok(match has_calls {
            true => rel.projected(columns(table)),
            false => rel,
        })
    }

    /// Binds conditions over the row of a table; gives the calls in them, too.
    fn over_row<T>(
        &mut self,
        guard: &Guard,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<(T, Vec<Call<Rel>>), SqlError> {
        let id = guard.table.id;
        if self.views.guarding.contains(&id) {
            let message = format!(
                "infinite recursion detected in policy for relation \"{}\"",
                guard.table.name
            );
            return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
        self.views.guarding.push(id);
        let none = Statement::none();
        let source = core::mem::replace(&mut self.source, none.source().clone());
        let named = core::mem::take(&mut self.named);
        let untyped = core::mem::take(&mut self.untyped);
        let inherited = self.inherited.take();
        let watched = core::mem::take(&mut self.views.watched);
        let outer = self.views.policy.take();
        let bound = self.nested(|binder| {
            binder.level().aggregates_in = Some("policy expressions");
            let bound = binder.kept(bind)?;
            Ok((bound, binder.take_calls()))
        });
        self.views.policy = outer;
        self.views.watched = watched;
        self.inherited = inherited;
        self.untyped = untyped;
        self.named = named;
        self.source = source;
        self.views.guarding.pop();
        let (bound, binds, _) = bound?;
        assert!(binds.is_empty(), "a policy reads no row of a statement");
        Ok(bound)
    }

    /// The permissive policies for a command as one condition, and the restrictive ones by name:
    /// USING, or what holds for rows that are written.
    fn combined(
        &mut self,
        guard: &Guard,
        command: PolicyCommand,
        using: bool,
    ) -> Result<(Expr, Vec<(String, Expr)>), SqlError> {
        let (mut permissive, mut restrictive) = (Vec::new(), Vec::new());
        for policy in guard.of(command) {
            let is_check = !using && policy.check.is_some();
            let bound = Bound {
                policy: policy.clone(),
                is_check,
            };
            if bound.condition().is_none() {
                continue;
            }
            let condition = self.policy_condition(&guard.table, bound)?;
            match policy.permissive {
                true => permissive.push(condition),
                false => restrictive.push((policy.name.clone(), condition)),
            }
        }
        let permissive = match (permissive.len(), permissive.pop()) {
            (1, Some(only)) => only,
            (_, Some(last)) => {
                permissive.push(last);
                Expr::Or(permissive)
            }
            (_, None) => Expr::bool(false),
        };
        Ok((permissive, restrictive))
    }

    fn policy_condition(&mut self, table: &Arc<Table>, bound: Bound) -> Result<Expr, SqlError> {
        let policy = bound.policy.clone();
        let text = bound.condition().map(|condition| condition.text.as_str());
        let text = text.unwrap_or_default();
        self.count_text("policies", text)?;
        let ast = expression(text)?;
        self.views.policy = Some(bound);
        let mut scope = table_scope(table, own(&table.name));
        // What a policy reads of its own table needs no privilege.
        scope
            .columns
            .iter_mut()
            .for_each(|column| column.origin = (0, 0));
        self.restrict(&mut scope, &table.name);
        self.set_scope(scope);
        let bound = self.condition(&ast, "POLICY");
        self.set_scope(Scope::default());
        self.views.policy = None;
        bound.map_err(|error| {
            let message = format!(
                "policy \"{}\" of table \"{}\": {}",
                policy.name,
                table.name,
                error.fields().message
            );
            match error.state() {
                SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE => {
                    SqlError::new(error.state(), message)
                }
                _ => error,
            }
        })
    }

    /// What rows must meet to be written; `None`: nothing.
    fn checks(&mut self, guard: &Guard, wanted: &[Check]) -> Result<Checks, SqlError> {
        let table = own(&guard.table.name).to_string();
        let (conditions, calls) = self.over_row(guard, |binder| {
            let mut all = Vec::new();
            for (command, checked) in wanted {
                let using = *checked != Checked::New || *command == PolicyCommand::Select;
                let (permissive, restrictive) = binder.combined(guard, *command, using)?;
                let message = |name: Option<String>| {
                    let policy = name.map_or_else(String::new, |name| format!(" \"{name}\""));
                    let (row, part) = match checked {
                        Checked::New => ("new", ""),
                        Checked::Met => ("new", " (USING expression)"),
                        Checked::Target => ("target", " (USING expression)"),
                    };
                    let message = format!(
                        "{row} row violates row-level security policy{policy}{part} for table \
                         \"{table}\""
                    );
                    Refusal {
                        message,
                        by_view: false,
                    }
                };
                all.push((permissive, message(None)));
                all.extend(
                    restrictive
                        .into_iter()
                        .map(|(name, condition)| (condition, message(Some(name)))),
                );
            }
            Ok(all)
        })?;
        Ok(Checks { conditions, calls })
    }

    /// What `bind` binds reads these relations, or not.
    pub(super) fn reading<T>(
        &mut self,
        relations: &[u32],
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<(T, bool), SqlError> {
        let outer = core::mem::replace(&mut self.views.watched, relations.to_vec());
        let was_read = core::mem::take(&mut self.views.is_read);
        let bound = bind(self);
        self.views.watched = outer;
        let is_read = core::mem::replace(&mut self.views.is_read, was_read);
        Ok((bound?, is_read))
    }

    /// The relations whose columns a statement reads that changes rows of this table.
    pub(super) fn read_targets(&self, table: &Table) -> Vec<u32> {
        let view = self.views.changed.as_deref();
        let view = view.map(|changed| changed.view.id.0);
        [table.id.0].into_iter().chain(view).collect()
    }

    /// Runs `bind` as part of the view whose owner changes the rows.
    fn on_behalf<T>(
        &mut self,
        by: Option<Arc<View>>,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let inside = core::mem::replace(&mut self.views.inside, by);
        let bound = bind(self);
        self.views.inside = inside;
        bound
    }

    /// A full new row of the table, of which some columns get these values: generated columns are
    /// computed from it.
    fn completed(&mut self, table: &Arc<Table>, mut row: Vec<Expr>) -> Result<Vec<Expr>, SqlError> {
        for (i, column) in table.columns.iter().enumerate() {
            if column.generated.is_some() {
                let mut value = self.generated(table, column)?;
                substitute(&mut value, &row);
                row[i] = value;
            }
        }
        Ok(row)
    }

    /// The rows of an INSERT, if the policies let them be written. `reads`: the statement reads
    /// columns of the table, so that it must see its rows.
    pub(super) fn guarded_source(
        &mut self,
        table: &Arc<Table>,
        by: Option<Arc<View>>,
        source: Rel,
        reads: bool,
    ) -> Result<Rel, SqlError> {
        self.on_behalf(by, |binder| {
            let Some(guard) = binder.guard(table)? else {
                return Ok(source);
            };
            let mut wanted = vec![(PolicyCommand::Insert, Checked::New)];
            if reads {
                wanted.push((PolicyCommand::Select, Checked::New));
            }
            let checks = binder.checks(&guard, &wanted)?;
            binder.checked_source(table, source, checks)
        })
    }

    pub(super) fn checked_source(
        &mut self,
        table: &Arc<Table>,
        source: Rel,
        checks: Checks,
    ) -> Result<Rel, SqlError> {
        let place = given_column(table);
        let volatile = |expr: &Expr| walk::volatility(expr) == Volatility::Volatile;
        match source {
            Rel::Values {
                mut rows,
                types,
                calls,
            } if checks.calls.is_empty() && !rows.iter().flatten().any(volatile) => {
                for row in &mut rows {
                    let whole = self.completed(table, row.clone())?;
                    let conditions = checks.conditions.iter().cloned();
                    let conditions = conditions.map(|(mut condition, message)| {
                        substitute(&mut condition, &whole);
                        (condition, message)
                    });
                    let value = row[place].clone();
                    row[place] = only_if(conditions.collect(), value);
                }
                Ok(Rel::Values { rows, types, calls })
            }
            source => {
                let mut row = columns(table);
                let whole = self.completed(table, row.clone())?;
                let (rel, conditions) = checks.over(&whole).applied(source);
                let value = row[place].clone();
                row[place] = only_if(conditions, value);
                Ok(rel.projected(row))
            }
        }
    }

    /// ON CONFLICT DO UPDATE, if the policies let the row be changed.
    pub(super) fn guarded_conflict(
        &mut self,
        table: &Arc<Table>,
        conflict: Option<&mut Conflict>,
        reads: bool,
    ) -> Result<(), SqlError> {
        let Some(ConflictAction::Update {
            assignments,
            condition,
        }) = conflict.map(|conflict| &mut conflict.action)
        else {
            return Ok(());
        };
        let Some(guard) = self.guard(table)? else {
            return Ok(());
        };
        let mut met = vec![(PolicyCommand::Update, Checked::Met)];
        let mut new = vec![(PolicyCommand::Update, Checked::New)];
        if reads {
            met.push((PolicyCommand::Select, Checked::Met));
            new.push((PolicyCommand::Select, Checked::New));
        }
        let (met, new) = (self.checks(&guard, &met)?, self.checks(&guard, &new)?);
        if !met.calls.is_empty() || !new.calls.is_empty() {
            return Err(
                unsupported("ON CONFLICT DO UPDATE under a policy with a subquery")
                    .hint("Use MERGE, or an UPDATE before the INSERT."),
            );
        }
        let volatile = |set: &BoundAssignment| walk::volatility(&set.value) == Volatility::Volatile;
        if assignments.iter().any(volatile) {
            return Err(unsupported(
                "ON CONFLICT DO UPDATE of a volatile value under row-level security",
            ));
        }
        let mut row = columns(table);
        for set in &*assignments {
            row[usize::from(set.column)] = set.value.clone();
        }
        let whole = self.completed(table, row)?;
        let mut all = met.conditions;
        all.extend(new.over(&whole).conditions);
        let allowed = only_if(all, Expr::bool(true));
        *condition = Some(match condition.take() {
            None => allowed,
            Some(own) => Expr::Case {
                arms: vec![(own, allowed)],
                otherwise: Box::new(Expr::bool(false)),
                ty: Type::Bool,
            },
        });
        Ok(())
    }

    /// The rows that an UPDATE (with assignments) or DELETE may change, and what it may make of
    /// them.
    pub(super) fn guarded_write(
        &mut self,
        table: &Arc<Table>,
        by: Option<Arc<View>>,
        rows: Rel,
        assignments: Option<&mut Vec<BoundAssignment>>,
        reads: bool,
    ) -> Result<Rel, SqlError> {
        self.on_behalf(by, |binder| {
            let Some(guard) = binder.guard(table)? else {
                return Ok(rows);
            };
            let command = match assignments {
                Some(_) => PolicyCommand::Update,
                None => PolicyCommand::Delete,
            };
            let mut rows = rows;
            let mut commands = vec![command];
            if reads {
                commands.push(PolicyCommand::Select);
            }
            let leaf = target_mut(&mut rows);
            let own_rows = core::mem::replace(leaf, Rel::One);
            *leaf = binder.guarded(table, own_rows, &commands)?;
            match assignments {
                Some(assignments) => binder.checked_update(&guard, rows, assignments, &commands),
                None => Ok(rows),
            }
        })
    }

    fn checked_update(
        &mut self,
        guard: &Guard,
        rows: Rel,
        assignments: &mut [BoundAssignment],
        commands: &[PolicyCommand],
    ) -> Result<Rel, SqlError> {
        let table = guard.table.clone();
        let changed = changed_columns(&table, assignments);
        // A row that was seen by the same conditions, of which none reads what has changed, is seen
        // afterwards.
        let wanted = commands.iter().filter(|command| {
            guard.reads(**command, &changed)
                || **command == PolicyCommand::Update && !guard.is_checked_before(**command)
        });
        let wanted: Vec<Check> = wanted.map(|command| (*command, Checked::New)).collect();
        if wanted.is_empty() {
            return Ok(rows);
        }
        self.updated_if(&table, rows, assignments, |binder| {
            binder.checks(guard, &wanted)
        })
    }

    /// The rows of an UPDATE, whose new values are there where the checks are met.
    pub(super) fn updated_if(
        &mut self,
        table: &Arc<Table>,
        rows: Rel,
        assignments: &mut [BoundAssignment],
        checks: impl FnOnce(&mut Self) -> Result<Checks, SqlError>,
    ) -> Result<Rel, SqlError> {
        let Some(first) = assignments.first() else {
            return Ok(rows);
        };
        let first_column = first.column;
        let volatile = |set: &BoundAssignment| walk::volatility(&set.value) == Volatility::Volatile;
        let mut rows = rows;
        if assignments.iter().any(volatile) {
            rows = computed_once(rows, assignments);
        }
        let checks = checks(self)?;
        let mut row = columns(table);
        for set in &*assignments {
            row[usize::from(set.column)] = set.value.clone();
        }
        let whole = self.completed(table, row)?;
        let (rows, conditions) = checks.over(&whole).applied(rows);
        for set in assignments {
            if set.column == first_column {
                let value = core::mem::replace(&mut set.value, Expr::bool(true));
                set.value = only_if(conditions, value);
                break;
            }
        }
        Ok(rows)
    }

    /// What a WHEN of a MERGE does with a row of the target, if the policies let it. Its rows have
    /// this number of columns before the values of calls.
    pub(super) fn guarded_match(
        &mut self,
        table: &Arc<Table>,
        assignments: Option<&mut Vec<BoundAssignment>>,
        condition: &mut Option<Expr>,
        width: u32,
    ) -> Result<(), SqlError> {
        let Some(guard) = self.guard(table)? else {
            return Ok(());
        };
        let Some(assignments) = assignments else {
            let checks = self.checks(&guard, &[(PolicyCommand::Delete, Checked::Target)])?;
            let conditions = self.merged_checks(checks, width);
            let allowed = only_if(conditions, Expr::bool(true));
            *condition = Some(match condition.take() {
                None => allowed,
                Some(own) => Expr::Case {
                    arms: vec![(own, allowed)],
                    otherwise: Box::new(Expr::bool(false)),
                    ty: Type::Bool,
                },
            });
            return Ok(());
        };
        let volatile = |set: &BoundAssignment| walk::volatility(&set.value) == Volatility::Volatile;
        if assignments.iter().any(volatile) {
            return Err(unsupported(
                "MERGE with a volatile value under row-level security",
            ));
        }
        let met = self.checks(&guard, &[(PolicyCommand::Update, Checked::Target)])?;
        let new = [PolicyCommand::Update, PolicyCommand::Select];
        let new = new.map(|command| (command, Checked::New));
        let new = self.checks(&guard, &new)?;
        let mut row = columns(table);
        for set in &*assignments {
            row[usize::from(set.column)] = set.value.clone();
        }
        let whole = self.completed(table, row)?;
        let mut conditions = self.merged_checks(met, width);
        conditions.extend(self.merged_checks(new.over(&whole), width));
        if let Some(set) = assignments.first_mut() {
            let value = core::mem::replace(&mut set.value, Expr::bool(true));
            set.value = only_if(conditions, value);
        }
        Ok(())
    }

    /// The conditions over the rows of a MERGE; their calls are made with those of its clauses.
    fn merged_checks(&mut self, checks: Checks, width: u32) -> Vec<(Expr, Refusal)> {
        let first = self.level().calls.len() as u32;
        let Checks {
            mut conditions,
            calls,
        } = checks.numbered(first);
        conditions
            .iter_mut()
            .for_each(|(condition, _)| place_calls(condition, width));
        self.level().calls.extend(calls);
        conditions
    }
}

/// The columns whose values assignments change, generated ones included.
fn changed_columns<'t>(table: &'t Table, assignments: &[BoundAssignment]) -> Vec<&'t str> {
    let is_set = |at: u16| assignments.iter().any(|set| set.column == at);
    let columns = table.columns.iter().enumerate();
    columns
        .filter(|(at, column)| {
            let from = || table.columns_of_generated(column);
            is_set(*at as u16) || column.generated.is_some() && from().into_iter().any(is_set)
        })
        .map(|(_, column)| column.name.as_str())
        .collect()
}

/// The rows with the assigned values behind them, which the assignments read.
fn computed_once(rows: Rel, assignments: &mut [BoundAssignment]) -> Rel {
    let width = rows.width();
    let mut exprs: Vec<Expr> = (0..width)
        .map(|at| Expr::Column(at, Type::Unknown))
        .collect();
    for set in assignments {
        let read = Expr::Column(exprs.len() as u32, set.value.ty());
        exprs.push(core::mem::replace(&mut set.value, read));
    }
    rows.projected(exprs)
}
