//! INSERT, UPDATE and DELETE.

use crate::expr::Generator;
use crate::ground::{READ, Table, WRITTEN};
use crate::query::{Scope, columns_of};
use crate::tree::{Node, Place};
use base::Type;

impl Generator {
    /// A statement that changes a table.
    pub(crate) fn change(&mut self) -> Node {
        self.careful = true;
        self.subqueries = true;
        let table = &WRITTEN[self.below(WRITTEN.len())];
        match self.below(5) {
            0 | 1 => self.insert(table),
            2 | 3 => self.update(table),
            _ => self.delete(table),
        }
    }

    fn insert(&mut self, table: &'static Table) -> Node {
        // Some of the columns, and always those of the key.
        let mut columns: Vec<(&str, Type)> = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            if at < 3 || self.one_in(2) {
                columns.push(*column);
            }
        }
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let head = format!("INSERT INTO {} ({})", table.name, names.join(", "));
        let mut node = Node::new("insert", Place::Fixed).text(head);
        node = if self.one_in(3) {
            let types: Vec<Type> = columns.iter().map(|(_, ty)| *ty).collect();
            // Ordered: the first of two rows with one key decides the result.
            let query = self.query(&types, 1, true);
            node.node(
                Node::new("insert query", Place::Fixed)
                    .text(" ")
                    .node(query),
            )
        } else {
            let count = 1 + self.below(3);
            let rows: Vec<Node> = (0..count).map(|_| self.new_row(&columns)).collect();
            let values = Node::new("insert values", Place::Fixed).text(" VALUES ");
            node.node(values.list(rows, ", "))
        };
        node = node.node(self.on_conflict(table, &columns));
        node.node(self.returning(table))
    }

    fn new_row(&mut self, columns: &[(&str, Type)]) -> Node {
        let row = Node::new("row", Place::Fixed).text("(");
        let cells: Vec<Node> = columns
            .iter()
            .map(|(name, ty)| match self.below(8) {
                0 => Node::new("default", Place::Fixed).text("DEFAULT"),
                1 => self.expr(*ty, 1),
                _ if matches!(*name, "id" | "u") => {
                    let text = self.prng.between(1, 40).to_string();
                    Node::leaf("literal", *ty, text)
                }
                _ => self.leaf(*ty),
            })
            .collect();
        row.list(cells, ", ").text(")")
    }

    fn on_conflict(&mut self, table: &'static Table, columns: &[(&str, Type)]) -> Node {
        if self.one_in(2) {
            return Node::new("", Place::Optional);
        }
        let key = if table.name == "m1" { "id" } else { "k1, k2" };
        let node = Node::new("on conflict", Place::Optional);
        if self.one_in(3) {
            let target = self.word(&["", " (KEY)"]).replace("KEY", key);
            return node.text(format!(" ON CONFLICT{target} DO NOTHING"));
        }
        let set: Vec<(&str, Type)> = columns
            .iter()
            .copied()
            .filter(|(name, _)| !key.contains(name))
            .collect();
        if set.is_empty() {
            return node.text(format!(" ON CONFLICT ({key}) DO NOTHING"));
        }
        let (name, ty) = set[self.below(set.len())];
        let mut scope = Scope::default();
        scope.columns.extend(columns_of(table, table.name));
        let excluded = columns
            .iter()
            .map(|(name, ty)| (format!("excluded.{name}"), *ty));
        scope.columns.extend(excluded);
        self.scopes.push(scope);
        self.subqueries = false;
        let value = self.expr(ty, 1);
        let condition = if self.one_in(3) {
            Some(self.predicate(1))
        } else {
            None
        };
        self.subqueries = true;
        self.scopes.pop();
        let mut node = Node::new("on conflict update", Place::Optional)
            .text(format!(" ON CONFLICT ({key}) DO UPDATE SET {name} = "))
            .node(value);
        if let Some(condition) = condition {
            let clause = Node::new("on conflict where", Place::Optional);
            node = node.node(clause.text(" WHERE ").node(condition));
        }
        node
    }

    fn update(&mut self, table: &'static Table) -> Node {
        let (joined, from) = self.joined(table);
        let mut node =
            Node::new("update", Place::Fixed).text(format!("UPDATE {} SET ", table.name));
        let mut columns = table.columns.to_vec();
        for at in 0..1 + self.below(2) {
            let (name, ty) = columns.swap_remove(self.below(columns.len()));
            let value = match self.below(8) {
                0 => Node::new("default", Place::Fixed).text("DEFAULT"),
                1 if ty == Type::Int4 && name != "id" => {
                    Node::leaf("increment", ty, format!("{}.{name} + 1", table.name))
                }
                _ => self.expr(ty, 2),
            };
            let comma = if at > 0 { ", " } else { "" };
            node = node.text(format!("{comma}{name} = ")).node(value);
        }
        node = node.node(from);
        node = node.node(self.joined_where(table, joined));
        self.scopes.pop();
        node.node(self.returning(table))
    }

    fn delete(&mut self, table: &'static Table) -> Node {
        let (joined, from) = self.joined(table);
        let mut node =
            Node::new("delete", Place::Fixed).text(format!("DELETE FROM {}", table.name));
        let using = from.render().replacen(" FROM ", " USING ", 1);
        let rule = from.rule.clone();
        node = node.node(Node::new(rule, Place::Fixed).text(using));
        node = node.node(self.joined_where(table, joined));
        self.scopes.pop();
        node.node(self.returning(table))
    }

    /// Pushes the scope of a change, perhaps with another table. That one is joined by its whole
    /// key, so each changed row has at most one partner.
    fn joined(&mut self, table: &'static Table) -> (bool, Node) {
        let mut scope = Scope::default();
        scope.columns.extend(columns_of(table, table.name));
        let joined = table.name == "m1" && self.one_in(4);
        let mut node = Node::new("", Place::Fixed);
        if joined {
            scope.columns.extend(columns_of(&READ[0], "t1"));
            node = Node::new("change from", Place::Fixed).text(" FROM t1");
        }
        self.scopes.push(scope);
        (joined, node)
    }

    fn joined_where(&mut self, table: &'static Table, joined: bool) -> Node {
        if joined {
            let node = Node::new("where", Place::Fixed);
            let node = node.text(format!(" WHERE t1.id = {}.id AND ", table.name));
            return node.node(self.predicate(2));
        }
        let node = Node::new("where", Place::Optional);
        match self.below(6) {
            0 => Node::new("", Place::Optional),
            1 | 2 => {
                let (name, ty) = table.columns[0];
                let number = self.prng.between(0, 8).to_string();
                node.text(format!(" WHERE {}.{name} = ", table.name))
                    .node(Node::leaf("literal", ty, number))
            }
            _ => node.text(" WHERE ").node(self.predicate(2)),
        }
    }

    fn returning(&mut self, table: &'static Table) -> Node {
        if self.one_in(4) {
            return Node::new("", Place::Optional);
        }
        let node = Node::new("returning", Place::Optional);
        if self.one_in(2) {
            return node.text(" RETURNING *");
        }
        let mut scope = Scope::default();
        scope.columns.extend(columns_of(table, table.name));
        self.scopes.push(scope);
        self.subqueries = false;
        let types = [self.ty(), self.ty()];
        let items = types.map(|ty| self.expr(ty, 1));
        self.subqueries = true;
        self.scopes.pop();
        node.text(" RETURNING ").list(items, ", ")
    }
}
