//! Functions and procedures in SQL: what is kept of them, and what depends on them.
//!
//! A body is kept as text and bound anew by each statement that calls it. A body that was given as
//! a string names tables by the path of the caller, and nothing is noted of what it uses. A body
//! of the SQL standard (`RETURN`, `BEGIN ATOMIC`) is read by the path of its maker, and keeps what
//! it uses from being dropped.

use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::names;
use crate::schemas::mark;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::{beside, own, schema_of, split};
use base::{SqlError, SqlState, Type};
use serde::{Deserialize, Serialize};

/// A function or a procedure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Function {
    /// Its number; also its oid.
    pub id: u32,
    /// Its full name ([`base::full_name`]). Several functions may have it.
    pub name: String,
    /// Called by CALL, without a result of its own.
    pub is_procedure: bool,
    /// What it takes and the columns that it gives, in the order in which they were declared.
    pub arguments: Vec<Argument>,
    /// What it gives.
    pub returns: Returns,
    /// What it does.
    pub body: Body,
    /// How long its value stays the same.
    pub lasts: Lasts,
    /// NULL for an argument that is NULL.
    pub strict: bool,
    /// Kept for those who ask the catalog.
    pub leakproof: bool,
    /// `s`, `r` or `u`: kept for those who ask the catalog.
    pub parallel: Parallel,
    /// Kept for those who ask the catalog.
    pub cost: Option<f64>,
    /// Kept for those who ask the catalog.
    pub rows: Option<f64>,
    /// SECURITY DEFINER: the body has the rights of the function's owner.
    pub definer: bool,
    /// Settings while the body runs, by name, as their texts.
    pub settings: Vec<(String, String)>,
    /// The table or view whose rows it gives.
    pub row_of: Option<u32>,
}

/// An argument of a function, or a column of its result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Argument {
    /// Which way it goes.
    pub mode: Mode,
    /// Empty: it has none.
    pub name: String,
    /// Its type, without modifiers.
    pub ty: Type,
    /// Its value if none is given, as kept text.
    pub default: Option<String>,
}

/// Which way an argument goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "they are named like the words of the statement"
)]
pub enum Mode {
    In,
    Out,
    InOut,
    /// A column of `RETURNS TABLE`.
    Table,
    /// An array of all further arguments of a call.
    Variadic,
}

impl Mode {
    /// Whether a call gives a value for it.
    pub fn takes(self) -> bool {
        matches!(self, Mode::In | Mode::InOut | Mode::Variadic)
    }

    /// Whether the result has a column of it.
    pub fn gives(self) -> bool {
        !matches!(self, Mode::In | Mode::Variadic)
    }
}

/// What a function gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Returns {
    /// Nothing.
    Void,
    /// One value.
    One(Type),
    /// Rows of one column.
    Each(Type),
    /// One row of its OUT arguments.
    Row,
    /// Rows of its OUT arguments, or of the columns of `RETURNS TABLE`.
    Rows,
}

/// What a function does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Body {
    /// The string that was given.
    Text(String),
    /// `RETURN` and an expression, or the statements between `BEGIN ATOMIC` and `END`.
    Parsed {
        /// It is one expression, kept as a SELECT.
        returns: bool,
        /// The texts of the statements.
        statements: Vec<String>,
        /// The same with full names, as kept texts: for people, and for dumps.
        shown: Vec<String>,
        /// The path by which names in them are looked up.
        path: Vec<u32>,
        /// Numbers of the relations and functions that they use.
        uses: Vec<u32>,
    },
}

/// How long the value of a function stays the same for the same arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "they are named like the words of the statement"
)]
pub enum Lasts {
    Immutable,
    Stable,
    #[default]
    Volatile,
}

/// Whether PostgreSQL would run it in several processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "they are named like the words of the statement"
)]
pub enum Parallel {
    Safe,
    Restricted,
    #[default]
    Unsafe,
}

/// A change of the functions. Those that are there are given by their numbers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub enum FunctionChange {
    Create {
        function: Function,
        replace: bool,
    },
    Drop {
        functions: Vec<u32>,
        cascade: bool,
    },
    /// Another full name: of another schema, too.
    Rename {
        function: u32,
        to: String,
    },
    /// Other properties; the body and the arguments stay.
    Alter {
        function: Function,
    },
}

impl Function {
    /// The arguments that a call of the function gives.
    pub fn inputs(&self) -> impl Iterator<Item = &Argument> {
        let inputs = self.arguments.iter();
        inputs.filter(|argument| argument.mode.takes())
    }

    /// The types of the arguments that tell functions of one name apart.
    pub fn input_types(&self) -> Vec<Type> {
        self.inputs().map(|argument| argument.ty).collect()
    }

    /// The columns that it gives, if it has OUT arguments or columns.
    pub fn outputs(&self) -> impl Iterator<Item = &Argument> {
        let outputs = self.arguments.iter();
        outputs.filter(|argument| argument.mode.gives())
    }

    /// Whether further arguments of a call become items of the last one.
    pub fn is_variadic(&self) -> bool {
        let last = self.inputs().last();
        last.is_some_and(|last| last.mode == Mode::Variadic)
    }

    /// The text of a setting while the body runs.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let mut all = self.settings.iter();
        let found = all.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether it gives any number of rows.
    pub fn gives_rows(&self) -> bool {
        matches!(self.returns, Returns::Each(_) | Returns::Rows)
    }

    /// `function` or `procedure`.
    pub fn noun(&self) -> &'static str {
        match self.is_procedure {
            true => "procedure",
            false => "function",
        }
    }

    /// `name(types)`, as messages have it.
    pub fn signature(&self) -> String {
        let types: Vec<String> = self.inputs().map(|a| a.ty.name()).collect();
        let name = beside(&self.name, &names::quoted(own(&self.name)));
        format!("{name}({})", types.join(", "))
    }

    /// Numbers of the relations and functions that keep a body of the SQL standard alive.
    pub fn uses(&self) -> &[u32] {
        match &self.body {
            Body::Text(_) => &[],
            Body::Parsed { uses, .. } => uses,
        }
    }

    fn types(&self) -> impl Iterator<Item = Type> {
        let result = match self.returns {
            Returns::One(ty) | Returns::Each(ty) => Some(ty),
            Returns::Void | Returns::Row | Returns::Rows => None,
        };
        let arguments = self.arguments.iter().map(|argument| argument.ty);
        arguments.chain(result)
    }

    /// What it gives, as CREATE OR REPLACE compares it.
    fn result_name(&self) -> String {
        if let Some(row) = self.row_of {
            return format!("{:?} {row}", self.returns);
        }
        let outputs: Vec<String> = self.outputs().map(|a| a.ty.name()).collect();
        match self.returns {
            Returns::Void => String::from("void"),
            Returns::One(ty) => ty.name(),
            Returns::Each(ty) => format!("SETOF {}", ty.name()),
            Returns::Row => format!("record({})", outputs.join(", ")),
            Returns::Rows => format!("TABLE({})", outputs.join(", ")),
        }
    }
}

/// How a kept text calls a function.
fn called(name: &str) -> String {
    let (schema, name) = split(name);
    format!("{}.{}(", mark(schema), names::quoted(name))
}

/// There is no such function.
pub fn no_function(number: u32) -> SqlError {
    let message = format!("function with OID {number} does not exist");
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
}

fn wrong(message: String) -> SqlError {
    SqlError::new(SqlState(*b"42P13"), message)
}

fn exists(function: &Function) -> SqlError {
    let name = own(&function.name);
    let noun = function.noun();
    let message = format!("{noun} \"{name}\" already exists with same argument types");
    SqlError::new(SqlState(*b"42723"), message)
}

/// What CREATE OR REPLACE may change.
///
/// # Errors
/// 42P13 for another result or other names of arguments, 42809 for another kind.
fn check_replaced(old: &Function, new: &Function) -> Result<(), CatalogError> {
    if old.is_procedure != new.is_procedure {
        let message = "cannot change routine kind";
        let detail = format!("\"{}\" is a {}.", own(&old.name), old.noun());
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).detail(detail));
    }
    let word = old.noun().to_uppercase();
    let hint = format!("Use DROP {word} {} first.", old.signature());
    if old.result_name() != new.result_name() {
        let what = match old.is_procedure {
            true => "cannot change whether a procedure has output parameters",
            false => "cannot change return type of existing function",
        };
        return Err(wrong(what.to_string()).hint(hint));
    }
    for (old, new) in old.inputs().zip(new.inputs()) {
        if !old.name.is_empty() && old.name != new.name {
            let name = &old.name;
            let message = format!("cannot change name of input parameter \"{name}\"");
            return Err(wrong(message).hint(hint));
        }
        if old.default.is_some() && new.default.is_none() {
            let message = "cannot remove parameter defaults from existing function";
            return Err(wrong(message.to_string()).hint(hint));
        }
    }
    Ok(())
}

impl Database {
    /// The functions of a full name.
    pub fn functions_named(&self, name: &str) -> &[Arc<Function>] {
        self.functions.get(name).map_or(&[], Vec::as_slice)
    }

    /// All functions.
    pub fn all_functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.values().flatten()
    }

    /// The function of this number.
    pub fn function(&self, number: u32) -> Option<&Arc<Function>> {
        self.all_functions().find(|function| function.id == number)
    }

    /// The function of this name and these types.
    fn same_function(&self, name: &str, types: &[Type]) -> Option<&Arc<Function>> {
        let mut found = self.functions_named(name).iter();
        found.find(|function| function.input_types() == types)
    }

    fn remove_function(&mut self, number: u32) {
        for all in self.functions.values_mut() {
            all.retain(|function| function.id != number);
        }
        self.functions.retain(|_, all| !all.is_empty());
    }

    /// The functions whose body keeps a relation or another function alive.
    pub(crate) fn functions_using(&self, number: u32) -> Vec<Arc<Function>> {
        let all = self.all_functions();
        let mut found: Vec<_> = all
            .filter(|one| one.uses().contains(&number) || one.row_of == Some(number))
            .cloned()
            .collect();
        found.sort_by_key(|function| function.id);
        found
    }

    /// The functions with an argument or a result of an enum type.
    pub(crate) fn functions_of_enum(&self, id: u32) -> impl Iterator<Item = &Arc<Function>> {
        let all = self.all_functions();
        all.filter(move |function| function.types().any(|ty| ty.user_id() == Some(id)))
    }

    /// # Errors
    /// 0A000: the body of a function names what is to get another name.
    pub(crate) fn keep_named(&self, relation: &str, word: &str) -> Result<(), CatalogError> {
        let Some((kind, id)) = self.relation(relation) else {
            return Ok(());
        };
        let using = self.functions_using(id);
        let user = using.iter().find(|function| match &function.body {
            Body::Text(_) => false,
            Body::Parsed { statements, .. } => {
                statements.iter().any(|text| names::has_word(text, word))
            }
        });
        let Some(user) = user else { return Ok(()) };
        let (noun, user) = (user.noun(), user.signature());
        let message = format!(
            "changing \"{word}\" of {kind} \"{relation}\", which {noun} {user} uses, is not \
             supported"
        );
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .hint("Drop the function first, and create it again."))
    }

    /// The functions that a kept text calls, by their names.
    pub fn functions_in(&self, text: &str) -> impl Iterator<Item = &Arc<Function>> {
        let all = self.all_functions();
        all.filter(move |function| text.contains(&called(&function.name)))
    }

    /// What calls a function in a kept text: tables, and views by their names.
    fn callers(&self, function: &Function) -> (Vec<String>, Vec<String>) {
        let called = called(&function.name);
        let calls = |text: &String| text.contains(&called);
        let mut users = Vec::new();
        for table in self.tables.values() {
            for column in &table.columns {
                let (name, of) = (&column.name, &table.name);
                if column.default.as_ref().is_some_and(calls) {
                    users.push(format!("default value for column {name} of table {of}"));
                }
                if column.generated.as_ref().is_some_and(calls) {
                    users.push(match column.of_index {
                        true => format!("index on table {of}"),
                        false => format!("column {name} of table {of}"),
                    });
                }
            }
            let checks = table.checks.iter();
            let checks = checks.filter(|check| calls(&check.expression));
            users.extend(
                checks.map(|check| format!("constraint {} on table {}", check.name, table.name)),
            );
        }
        for domain in self.domains.values() {
            if domain.texts().any(calls) {
                users.push(format!("type {}", domain.name));
            }
        }
        for (table, policy) in self.policies() {
            let mut conditions = policy.using.iter().chain(&policy.check);
            if conditions.any(|condition| calls(&condition.text)) {
                users.push(format!("policy {} on table {}", policy.name, table.name));
            }
        }
        let stored = self.stored.values().map(|stored| &stored.view);
        let stored = stored.filter(|view| calls(&view.query));
        users.extend(stored.map(|view| format!("materialized view {}", view.name)));
        let views = self.views.values().filter(|view| calls(&view.query));
        (users, views.map(|view| view.name.clone()).collect())
    }

    /// Removes a function with what depends on it.
    ///
    /// # Errors
    /// 2BP01 without `cascade`; 0A000 if what depends on it is part of a table.
    pub(crate) fn drop_function(
        &mut self,
        number: u32,
        others: &[u32],
        cascade: bool,
    ) -> Result<Vec<String>, CatalogError> {
        let Some(function) = self.function(number).cloned() else {
            return Ok(Vec::new());
        };
        let (noun, signature) = (function.noun(), function.signature());
        let (parts, views) = self.callers(&function);
        let mut using = self.functions_using(number);
        using.retain(|user| user.id != number && !others.contains(&user.id));
        let mut users = parts.clone();
        users.extend(views.iter().map(|view| format!("view {view}")));
        let functions = using.iter();
        users.extend(functions.map(|user| format!("{} {}", user.noun(), user.signature())));
        if users.is_empty() {
            self.remove_function(number);
            return Ok(Vec::new());
        }
        if !cascade {
            let message =
                format!("cannot drop {noun} {signature} because other objects depend on it");
            let lines = users.iter();
            let lines = lines.map(|user| format!("{user} depends on {noun} {signature}"));
            return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message)
                .detail(lines.collect::<Vec<_>>().join("\n"))
                .hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        if let Some(part) = parts.first() {
            let message =
                format!("DROP ... CASCADE of {noun} {signature}, which {part} uses, is not");
            return Err(
                SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message + " supported")
                    .hint("Drop that first, or give it another expression."),
            );
        }
        self.remove_function(number);
        for view in &views {
            if self.views.contains_key(view) {
                self.drop_views_with(("view", view), None, &[], true)?;
                self.views.remove(view);
            }
        }
        for user in &using {
            self.drop_function(user.id, others, true)?;
        }
        Ok(Vec::from([match users.as_slice() {
            [user] => format!("drop cascades to {user}"),
            several => format!("drop cascades to {} other objects", several.len()),
        }]))
    }

    /// Removes what is in a schema that goes.
    pub(crate) fn drop_functions_of(&mut self, schema: u32) -> Result<(), CatalogError> {
        let all = self.all_functions();
        let own = all.filter(|function| schema_of(&function.name) == schema);
        let own: Vec<u32> = own.map(|function| function.id).collect();
        for number in &own {
            self.drop_function(*number, &own, true)?;
        }
        Ok(())
    }
}

impl Catalog {
    pub(crate) fn change_functions(
        &mut self,
        database: &str,
        change: &FunctionChange,
    ) -> Result<Applied, CatalogError> {
        match change {
            FunctionChange::Create { function, replace } => {
                self.create_function(database, function, *replace)
            }
            FunctionChange::Drop { functions, cascade } => {
                let owner = self.database_mut(database)?;
                let mut applied = Applied::default();
                for number in functions {
                    let notices = owner.drop_function(*number, functions, *cascade)?;
                    applied.notices.extend(notices);
                }
                Ok(applied)
            }
            FunctionChange::Rename { function, to } => {
                self.rename_function(database, *function, to)
            }
            FunctionChange::Alter { function } => {
                let owner = self.database_mut(database)?;
                let number = function.id;
                owner.function(number).ok_or_else(|| no_function(number))?;
                owner.remove_function(number);
                owner.add_function(function.clone());
                Ok(Applied::default())
            }
        }
    }

    fn create_function(
        &mut self,
        database: &str,
        function: &Function,
        replace: bool,
    ) -> Result<Applied, CatalogError> {
        let number = self.next_number();
        let owner = self.database_mut(database)?;
        for ty in function.types() {
            owner.check_type(ty)?;
        }
        for used in function.uses() {
            let known = owner.function(*used).is_some() || owner.has_number(*used);
            if !known && *used >= crate::apply::FIRST_ID {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation with OID {used} does not exist"),
                ));
            }
        }
        let mut function = function.clone();
        function.id = number;
        let types = function.input_types();
        if let Some(old) = owner.same_function(&function.name, &types).cloned() {
            if !replace {
                return Err(exists(&old));
            }
            check_replaced(&old, &function)?;
            function.id = old.id;
            owner.remove_function(old.id);
        }
        owner.add_function(function);
        Ok(Applied::default())
    }

    fn rename_function(
        &mut self,
        database: &str,
        number: u32,
        to: &str,
    ) -> Result<Applied, CatalogError> {
        let owner = self.database_mut(database)?;
        let found = owner.function(number).ok_or_else(|| no_function(number))?;
        let found = found.clone();
        let renamed = Function {
            name: to.to_string(),
            ..(*found).clone()
        };
        if let Some(other) = owner.same_function(to, &found.input_types()) {
            return Err(match other.id == number {
                true => exists(&renamed),
                false => exists(other),
            });
        }
        let (mut users, views) = owner.callers(&found);
        users.extend(views.iter().map(|view| format!("view {view}")));
        let functions = owner.functions_using(number);
        let functions = functions.iter().filter(|user| user.id != number);
        users.extend(functions.map(|user| format!("{} {}", user.noun(), user.signature())));
        if let Some(user) = users.first() {
            let (noun, signature) = (found.noun(), found.signature());
            let message = format!("renaming {noun} {signature}, which {user} uses, is not");
            return Err(
                SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message + " supported")
                    .hint("Drop that first, and create it again."),
            );
        }
        owner.remove_function(number);
        owner.add_function(renamed);
        Ok(Applied::default())
    }
}

impl Database {
    fn add_function(&mut self, function: Function) {
        let all = self.functions.entry(function.name.clone()).or_default();
        all.push(Arc::new(function));
        all.sort_by_key(|function| function.id);
    }

    /// Whether a relation has this number.
    fn has_number(&self, number: u32) -> bool {
        self.relations().any(|(_, _, id)| id == number)
    }
}
