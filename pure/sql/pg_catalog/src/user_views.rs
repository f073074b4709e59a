//! Rows about the views of users, and their definitions.

use super::*;
use ::functions::keywords::quote_ident;
use catalog::View;

/// Oid of the catalog of rules: every view has one, through which it depends on what it uses.
const PG_REWRITE: u32 = 2618;
const PG_CLASS: u32 = 1259;

impl CatalogCx<'_> {
    pub(super) fn views(&self) -> impl Iterator<Item = &View> {
        self.database.views.values().map(|view| &**view)
    }

    /// Those that are materialized too.
    fn all_views(&self) -> impl Iterator<Item = &View> {
        let stored = self.database.stored.values();
        self.views().chain(stored.map(|stored| &*stored.view))
    }
}

/// The view's query, as it was written, with the names that CREATE VIEW gave to its columns.
fn definition(cx: &CatalogCx<'_>, view: &View) -> String {
    let query = cx.kept_text(&view.query);
    if !view.renamed {
        return format!(" {query};");
    }
    let columns = view.columns.iter().map(|column| quote_ident(&column.name));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let name = quote_ident(own(&view.name));
    format!(" SELECT {columns}\n   FROM ({query}) {name}({columns});")
}

/// `pg_get_viewdef(oid)`.
pub(super) fn definition_of(cx: &CatalogCx<'_>, id: u32) -> Datum {
    let view = cx.all_views().find(|view| view.id.0 == id);
    view.map_or(Datum::Null, |view| text(definition(cx, view)))
}

/// Rows of pg_views.
pub(super) fn list(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for view in cx.views() {
        let (schema, name) = (cx.schema(&view.name), text(own(&view.name)));
        let owner = cx.role_name(cx.owner(view.id.0));
        out.push([schema, name, text(owner), text(definition(cx, view))]);
    }
}

/// Rows of pg_matviews.
pub(super) fn stored(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for stored in cx.database.stored.values() {
        let view = &*stored.view;
        let table = cx.database.tables.get(&view.name);
        let has_index = table.is_some_and(|table| indexes(table).next().is_some());
        out.push([
            cx.schema(&view.name),
            text(own(&view.name)),
            text(cx.role_name(cx.owner(view.id.0))),
            Datum::Null,
            flag(has_index),
            flag(stored.filled),
            text(definition(cx, view)),
        ]);
    }
}

/// Rows of information_schema.views.
pub(super) fn information(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let seen = |view: &&View| cx.sees(view.id.0, sees::READS);
    for view in cx.views().filter(seen) {
        let shown = cx.has_owner(view.id.0).then(|| definition(cx, view));
        let changes = if view.updatable { "YES" } else { "NO" };
        out.push([
            text(cx.database.name.as_str()),
            cx.schema(&view.name),
            text(own(&view.name)),
            optional(shown),
            text(match view.check {
                None => "NONE",
                Some(false) => "LOCAL",
                Some(true) => "CASCADED",
            }),
            text(changes),
            text(changes),
            text("NO"),
            text("NO"),
            text("NO"),
        ]);
    }
}

/// The number of a view's rule: that of the view, apart from catalog numbers.
fn rule_oid(view: &View) -> u32 {
    3 << 30 | view.id.0 & 0x3fff_ffff
}

/// Rows of pg_rewrite.
pub(super) fn rules(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for view in cx.all_views() {
        out.push([
            oid(rule_oid(view)),
            text("_RETURN"),
            oid(view.id.0),
            letter('1'),
            letter('O'),
            flag(true),
            text("<>"),
            text("<>"),
        ]);
    }
}

/// What views depend on, in pg_depend.
pub(super) fn depend(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for view in cx.all_views() {
        let mut push = |relation: u32, column: usize, kind: char| {
            out.push([
                oid(PG_REWRITE),
                oid(rule_oid(view)),
                int(0),
                oid(PG_CLASS),
                oid(relation),
                int(column),
                letter(kind),
            ]);
        };
        push(view.id.0, 0, 'i');
        push(view.id.0, 0, 'n');
        for used in &view.uses {
            let (id, columns): (u32, Vec<(usize, &str)>) =
                match cx.database.tables.get(&used.relation) {
                    Some(table) => {
                        let names = visible(table).map(|(at, c)| (at, c.name.as_str()));
                        (table.id.0, names.collect())
                    }
                    None => match cx.database.views.get(&used.relation) {
                        Some(view) => {
                            let names = view.columns.iter().map(|c| c.name.as_str());
                            (view.id.0, names.enumerate().collect())
                        }
                        None => continue,
                    },
                };
            if used.columns.is_empty() {
                push(id, 0, 'n');
            }
            for (at, _) in columns
                .iter()
                .filter(|(_, name)| used.columns.iter().any(|read| read == name))
            {
                push(id, at + 1, 'n');
            }
        }
    }
}
