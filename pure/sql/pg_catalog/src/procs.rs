//! pg_proc: the functions that exist here, with PostgreSQL's numbers, and those that pg_type refers
//! to. `procs.txt` was recorded from PostgreSQL.

use super::*;

/// A line of the list: number, name, kind (`f` function, `a` aggregate), whether it returns a set,
/// variadic type, volatility, whether it is strict, arguments with a default, type of the result,
/// types of the arguments.
const LIST: &str = include_str!("procs.txt");

/// A function.
pub(super) struct Proc {
    pub(super) oid: u32,
    pub(super) name: &'static str,
    kind: &'static str,
    is_set: bool,
    variadic: u32,
    volatility: &'static str,
    is_strict: bool,
    defaults: i64,
    returns: u32,
    pub(super) args: Vec<u32>,
}

impl Proc {
    fn read(line: &'static str) -> Option<Proc> {
        let mut words = line.split(' ');
        Some(Proc {
            oid: words.next()?.parse().ok()?,
            name: words.next()?,
            kind: words.next()?,
            is_set: words.next()? == "1",
            variadic: words.next()?.parse().ok()?,
            volatility: words.next()?,
            is_strict: words.next()? == "1",
            defaults: words.next()?.parse().ok()?,
            returns: words.next()?.parse().ok()?,
            args: words.map(|word| word.parse().ok()).collect::<Option<_>>()?,
        })
    }

    /// Whether a call gives one value.
    pub(super) fn gives_value(&self) -> bool {
        self.kind == "f" && !self.is_set && self.variadic == 0
    }

    /// Its arguments as `pg_get_function_arguments` writes them.
    pub(super) fn arguments(&self) -> String {
        let last = self.args.len().saturating_sub(1);
        let arg = |(at, oid): (usize, &u32)| match self.variadic != 0 && at == last {
            true => format!("VARIADIC {}", names::type_name(*oid, None)),
            false => names::type_name(*oid, None),
        };
        self.args
            .iter()
            .enumerate()
            .map(arg)
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Its result as `pg_get_function_result` writes it.
    pub(super) fn result(&self) -> String {
        let ty = names::type_name(self.returns, None);
        if self.is_set {
            format!("SETOF {ty}")
        } else {
            ty
        }
    }
}

/// All functions, in order of their numbers.
pub(super) fn all() -> impl Iterator<Item = Proc> {
    LIST.lines()
        .map(|line| Proc::read(line).expect("a line of the list is whole"))
}

/// The function of this number.
pub(super) fn by_oid(oid: u32) -> Option<Proc> {
    let line = LIST.lines().find(|line| {
        let number = line.split(' ').next();
        number.and_then(|number| number.parse().ok()) == Some(oid)
    })?;
    Proc::read(line)
}

/// What `pg_get_function_result` and its like tell of a function.
pub(super) fn told(cx: &CatalogCx<'_>, name: &str, oid: u32) -> Datum {
    if let Some(own) = routines::told(cx, name, oid) {
        return own;
    }
    match by_oid(oid) {
        _ if matches!(name, "pg_get_functiondef" | "pg_get_function_sqlbody") => Datum::Null,
        Some(proc) if name == "pg_get_function_result" => text(proc.result()),
        Some(proc) => text(proc.arguments()),
        None => Datum::Null,
    }
}

/// Functions of this name.
pub(super) fn named(name: &str) -> impl Iterator<Item = Proc> {
    all().filter(move |proc| proc.name == name)
}

/// pg_proc.
pub(super) fn rows(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    routines::rows(cx, out);
    const INTERNAL: u32 = 12;
    for proc in all() {
        let letter_of = |word: &str| letter(word.chars().next().unwrap_or(' '));
        let mut row = vec![
            oid(proc.oid),
            text(proc.name),
            oid(PG_CATALOG),
            oid(OWNER),
            oid(INTERNAL),
            Datum::Float(1.0),
            Datum::Float(if proc.is_set { 1000.0 } else { 0.0 }),
            oid(proc.variadic),
            oid(0),
            letter_of(proc.kind),
            flag(false),
            flag(false),
            flag(proc.is_strict),
            flag(proc.is_set),
            letter_of(proc.volatility),
            letter('s'),
            int(proc.args.len() as i64),
            int(proc.defaults),
            oid(proc.returns),
            array(proc.args.iter().map(|arg| oid(*arg))),
        ];
        row.extend([const { Datum::Null }; 5]);
        row.push(text(proc.name));
        row.extend([const { Datum::Null }; 4]);
        out.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order_and_every_function_is_in_it() {
        let found: Vec<Proc> = all().collect();
        assert!(found.is_sorted_by(|a, b| a.oid < b.oid));
        // No functions in PostgreSQL, but syntax.
        let own = [
            "current_timestamp",
            "current_time",
            "localtimestamp",
            "current_date",
            "localtime",
            "current_user",
            "session_user",
            "current_role",
            "user",
            "current_catalog",
            // Of extensions there.
            "uuid_generate_v4",
            "digest",
            "hmac",
        ];
        let missing: Vec<&str> = expr::resolve::listing()
            .iter()
            .filter(|listed| listed.form == expr::resolve::Form::Function)
            .map(|listed| listed.name)
            .filter(|name| !own.contains(name) && !found.iter().any(|proc| proc.name == *name))
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
        let abs = named("abs")
            .find(|proc| proc.args == [23])
            .expect("abs(integer)");
        assert_eq!((abs.oid, abs.result()), (1397, "integer".to_owned()));
        let concat = named("concat").next().expect("concat");
        assert_eq!(concat.arguments(), "VARIADIC \"any\"");
        assert_eq!(by_oid(1397).map(|proc| proc.name), Some("abs"));
    }
}
