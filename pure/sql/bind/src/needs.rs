//! What the statement needs to be allowed is noted while it is bound.

use super::Binder;
use catalog::objects::is_list_of_objects;
use catalog::{Function, Table, View};
use rights::{Need, ObjectKind, Privileges};
use std::sync::Arc;

impl Binder<'_> {
    /// On whose behalf relations are used here: the view or the function, whose owner it is.
    pub(super) fn by(&self) -> Option<u32> {
        let view = self.views.inside.as_ref().map(|view| view.id.0);
        view.or(self.routines.definer)
    }

    /// The statement calls a function.
    pub(super) fn need_function(&mut self, function: &Function) {
        self.needs.add(Need {
            by: self.routines.definer,
            relation: function.id,
            kind: function.kind(),
            name: function.name.as_str().into(),
            wanted: Privileges::EXECUTE,
            columns: Vec::new(),
        });
    }

    fn need(&mut self, relation: u32, kind: ObjectKind, name: &str, wanted: Privileges) {
        let by = self.by();
        self.needs.add(Need {
            by,
            relation,
            kind,
            name: name.into(),
            wanted,
            columns: Vec::new(),
        });
    }

    /// The statement needs this privilege on a table.
    pub fn need_table(&mut self, table: &Table, wanted: Privileges) {
        self.need(table.id.0, ObjectKind::Table, &table.name, wanted);
    }

    /// The statement needs this privilege on a view.
    pub fn need_view(&mut self, view: &View, wanted: Privileges) {
        self.need(view.id.0, ObjectKind::View, &view.name, wanted);
    }

    pub(super) fn need_sequence(&mut self, sequence: &catalog::Sequence, wanted: Privileges) {
        self.need(sequence.id.0, ObjectKind::Sequence, &sequence.name, wanted);
    }

    /// The statement does with a sequence what only its owner may.
    pub fn need_own_sequence(&mut self, sequence: &catalog::Sequence) {
        let (id, name) = (sequence.id.0, sequence.name.as_str().into());
        self.needs.owned.push((id, ObjectKind::Sequence, name));
    }

    /// What `bind` notes is what a change of the schema needs.
    pub fn need_for_change<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        let needs = core::mem::replace(&mut self.needs, core::mem::take(&mut self.needs_of_change));
        let bound = bind(self);
        self.needs_of_change = core::mem::replace(&mut self.needs, needs);
        bound
    }

    /// What `bind` binds needs no privileges: it is part of a table, and not of the statement.
    pub fn without_needs<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        let needs = core::mem::take(&mut self.needs);
        let bound = bind(self);
        self.needs = needs;
        bound
    }

    /// The statement does what only a superuser may.
    pub fn need_superuser(&mut self, sentence: &str) {
        self.needs.superuser.get_or_insert_with(|| sentence.into());
    }

    /// The statement reads a column.
    pub(super) fn need_column(&mut self, (relation, attribute): (u32, i16)) {
        self.views.is_read |= self.views.watched.contains(&relation);
        let Ok(place) = u16::try_from(attribute - 1) else {
            return;
        };
        let by = self.by();
        let mut known = self.needs.relations.iter_mut();
        let same = |need: &&mut Need| {
            need.relation == relation && need.by == by && need.wanted == Privileges::SELECT
        };
        if let Some(need) = known.find(same) {
            if !need.columns.contains(&place) {
                need.columns.push(place);
            }
            return;
        }
        // The target of an UPDATE or DELETE: its rows are read only if a column is.
        let mut tables = self.cx.database.tables.values();
        if let Some(table) = tables.find(|table| table.id.0 == relation) {
            if is_list_of_objects(&table.name) {
                return;
            }
            let table = Arc::clone(table);
            self.need_table(&table, Privileges::SELECT);
        } else {
            let mut views = self.cx.database.views.values();
            let Some(view) = views.find(|view| view.id.0 == relation) else {
                return;
            };
            let view = Arc::clone(view);
            self.need_view(&view, Privileges::SELECT);
        }
        self.need_column((relation, attribute));
    }

    /// The statement writes these columns of a table, perhaps through a view.
    pub fn need_columns(&mut self, table: &Table, wanted: Privileges, places: &[u16]) {
        let changed = self.views.changed.as_deref();
        for need in &mut self.needs.relations {
            if need.wanted != wanted {
                continue;
            }
            if need.relation == table.id.0 {
                need.columns.extend(places);
            } else if let Some(changed) = changed
                && need.relation == changed.view.id.0
            {
                let own = changed.columns.iter().enumerate();
                let written = own.filter(|(_, place)| place.is_some_and(|p| places.contains(&p)));
                need.columns.extend(written.map(|(at, _)| at as u16));
            }
        }
    }
}
