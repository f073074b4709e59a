//! Texts that differ in their literals alone share one plan: one of their shape, in which the
//! literals are parameters ([`parse::shape`]).
//!
//! A shape is planned when its second text comes, and used only if its result has the columns that
//! the text itself has. Everything else, errors too, is the text's own business.

use crate::kept::Kept;
use crate::plans::Prepared;
use crate::plans::Site;
use crate::{Session, SessionCx};
use base::lookup::FixedHasher;
use base::{DatabaseId, Type};
use exec::port::Params;
use parse::shape::Shape;
use parse::values::are_values;
use plan::Plan;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// What is known of a shape.
#[derive(Clone)]
enum Form {
    /// All its literals are values: the statement, planned.
    Whole(Rc<Prepared>),
    /// Those literals that stay in the text.
    Partly(Rc<[bool]>),
    /// Its texts are planned one by one, with this version of the catalog at least.
    Never(u64),
}

struct Known {
    database: DatabaseId,
    text: Box<str>,
    types: Box<[Type]>,
    form: Form,
}

/// Shapes that the sessions of one shard know.
pub(crate) struct Shapes {
    kept: Kept<Known>,
    /// Its memory is used again for each text.
    shape: Shape,
}

impl Shapes {
    pub(crate) fn new(entries_max: usize) -> Shapes {
        Shapes {
            kept: Kept::new(entries_max),
            shape: Shape::default(),
        }
    }

    fn find(&mut self, hash: u64, database: DatabaseId, shape: &Shape) -> Option<Form> {
        let types = || shape.literals.iter().map(|literal| &literal.ty);
        let is = |known: &Known| {
            known.database == database
                && *known.text == *shape.text
                && known.types.iter().eq(types())
        };
        Some(self.kept.get(hash, is)?.form.clone())
    }

    fn put(&mut self, hash: u64, database: DatabaseId, shape: &Shape, form: Form) {
        let known = Known {
            database,
            text: shape.text.as_str().into(),
            types: types_of(shape, &[]).into(),
            form,
        };
        self.kept.put(hash, known);
    }
}

/// A statement with the values of its text.
type Shaped = (Rc<Prepared>, Params);

impl Session {
    /// The statement of a text's shape, with the text's literals as parameters. `None`: it has no
    /// shape of use, or is the first of it.
    pub(super) fn shaped(&mut self, cx: &mut SessionCx<'_>, text: &str) -> Option<Shaped> {
        let mut shape = core::mem::take(&mut cx.plans.shapes.shape);
        let shaped = match shape.read(text) {
            true => self.of_shape(cx, text, &shape),
            false => None,
        };
        cx.plans.shapes.shape = shape;
        shaped
    }

    fn of_shape(&mut self, cx: &mut SessionCx<'_>, text: &str, shape: &Shape) -> Option<Shaped> {
        let database = self.database(cx).ok()?.id;
        let hash = hash_of(database, &self.site(cx), shape);
        let form = match cx.plans.shapes.find(hash, database, shape) {
            Some(Form::Never(version)) if version == cx.catalog.version => return None,
            Some(Form::Whole(prepared)) if self.is_usable(cx, &prepared) => Form::Whole(prepared),
            Some(Form::Partly(kept)) => Form::Partly(kept),
            // Not known, or known for another catalog or number of rows.
            _ if !cx.plans.shapes.kept.admits(hash) => return None,
            _ => {
                let form = self.form_of(cx, text, shape)?;
                cx.plans.shapes.put(hash, database, shape, form.clone());
                form
            }
        };
        match form {
            Form::Whole(prepared) => {
                let params = self.values(cx, text, shape, &[], &prepared)?;
                Some((prepared, params))
            }
            Form::Partly(kept) => {
                let prepared = self.partly(cx, text, shape, &kept)?;
                let params = self.values(cx, text, shape, &kept, &prepared)?;
                Some((prepared, params))
            }
            Form::Never(_) => None,
        }
    }

    /// Finds out about a shape by one of its texts. `None`: the text itself cannot be planned.
    fn form_of(&mut self, cx: &mut SessionCx<'_>, text: &str, shape: &Shape) -> Option<Form> {
        let alone = self.planned_alone(cx, text)?;
        let never = Form::Never(cx.catalog.version);
        let Ok(statements) = self.parse(cx, &shape.text) else {
            return Some(never);
        };
        let [statement] = &statements[..] else {
            return Some(never);
        };
        let count = shape.literals.len();
        let is_text = |at: usize| shape.literals[at].ty == Type::Unknown;
        let values = are_values(statement, count, &is_text);
        if !values.contains(&true) {
            return Some(never);
        }
        let kept: Rc<[bool]> = values.iter().map(|value| !value).collect();
        let own = shape.with_literals(text, &kept);
        let prepared = self.alike(cx, &alone, &own, &types_of(shape, &kept));
        Some(match prepared {
            Some(prepared) if !kept.contains(&true) => Form::Whole(prepared),
            Some(_) => Form::Partly(kept),
            None => never,
        })
    }

    /// The statement of a shape some of whose literals stay in the text. What stays may be another
    /// one each time, so it is planned when the same ones come again.
    fn partly(
        &mut self,
        cx: &mut SessionCx<'_>,
        text: &str,
        shape: &Shape,
        kept: &[bool],
    ) -> Option<Rc<Prepared>> {
        let own = shape.with_literals(text, kept);
        let declared = types_of(shape, kept);
        if let Some(prepared) = self.cached(cx, &own, &declared) {
            return Some(prepared);
        }
        let database = self.database(cx).ok()?.id;
        let site = self.site(cx);
        if !cx.plans.admits(database, &own, &declared, &site) {
            return None;
        }
        let alone = self.planned_alone(cx, text)?;
        self.alike(cx, &alone, &own, &declared)
    }

    /// The statement `own`, planned, if its plan is like that of the text without parameters.
    fn alike(
        &mut self,
        cx: &mut SessionCx<'_>,
        alone: &Plan,
        own: &str,
        declared: &[Type],
    ) -> Option<Rc<Prepared>> {
        let prepared = self.prepare(cx, own, declared).ok()?;
        let plan = prepared.plan.as_ref()?;
        // With parameters in the place of constants it would read another index.
        if alone.by_values {
            return None;
        }
        let same = plan.params.len() == declared.len()
            && plan.returns_rows == alone.returns_rows
            && plan.columns == alone.columns
            && plan.writes == alone.writes
            && plan.locks == alone.locks;
        same.then_some(prepared)
    }

    /// The plan of a text. `None`: it is not one statement, or has errors.
    fn planned_alone(&mut self, cx: &mut SessionCx<'_>, text: &str) -> Option<Arc<Plan>> {
        match &self.parse(cx, text).ok()?[..] {
            [statement] => self.plan(cx, statement, &[]).ok(),
            _ => None,
        }
    }

    /// The literals that are not `kept` as values of the plan's parameters. `None`: one is none.
    fn values(
        &self,
        cx: &SessionCx<'_>,
        text: &str,
        shape: &Shape,
        kept: &[bool],
        prepared: &Prepared,
    ) -> Option<Params> {
        let types = &prepared.plan.as_ref()?.params;
        let taken = shape.literals.iter().enumerate();
        let taken = taken.filter(|(at, _)| !kept.get(*at).is_some_and(|kept| *kept));
        let values = taken.zip(types).map(|((_, literal), ty)| {
            let value = Shape::value(text, literal);
            self.read_text(cx, *ty, &value)
        });
        values.collect::<Result<Vec<_>, _>>().ok().map(Params::from)
    }
}

/// Types of the literals that are not `kept`.
fn types_of(shape: &Shape, kept: &[bool]) -> Vec<Type> {
    let literals = shape.literals.iter().enumerate();
    let taken = literals.filter(|(at, _)| !kept.get(*at).is_some_and(|kept| *kept));
    taken.map(|(_, literal)| literal.ty).collect()
}

/// Sessions of other time zones and paths have entries of their own: a plan is made for one.
fn hash_of(database: DatabaseId, site: &Site, shape: &Shape) -> u64 {
    let mut hasher = FixedHasher::default();
    hasher.write_u32(database.0);
    site.hash(&mut hasher);
    hasher.write(shape.text.as_bytes());
    for literal in &shape.literals {
        literal.ty.hash(&mut hasher);
    }
    hasher.finish()
}
