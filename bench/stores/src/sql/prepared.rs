//! Statements that a connection has prepared.

use super::reach::{Reach, failure_of_error};
use entity::sql::{Dialect, Statement};
use entity::{Failure, Kind};
use std::sync::Arc;
use workload::wire::{Connection, ParamType, Prepared};

/// A prepared statement, with where the values of its parameters lie.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) prepared: Prepared,
    pub(crate) params: Arc<[usize]>,
}

/// A statement whose parameters are in their order.
pub(crate) fn plain(sql: &str, params: &[Kind]) -> Statement {
    Statement {
        sql: String::from(sql),
        params: params.iter().copied().enumerate().collect(),
    }
}

/// Prepares statements on a connection.
pub(crate) async fn prepare<R: Reach>(
    link: &mut R::Link,
    dialect: Dialect,
    statements: Vec<Statement>,
) -> Result<Vec<Ready>, Failure> {
    let types = statements.iter().map(|statement| {
        let kinds = statement.params.iter();
        let types = kinds.map(|(_, kind)| match (kind, dialect) {
            (Kind::Bool, _) => ParamType::Bool,
            (Kind::Int, _) => ParamType::BigInt,
            (Kind::Real, _) => ParamType::Double,
            (Kind::Bytes, Dialect::Postgres) => ParamType::Bytea,
            (Kind::Text | Kind::Bytes, _) => ParamType::Text,
        });
        types.collect::<Vec<ParamType>>()
    });
    let types: Vec<Vec<ParamType>> = types.collect();
    let texts = statements.iter().map(|statement| statement.sql.as_str());
    let list: Vec<(&str, &[ParamType])> = texts.zip(types.iter().map(Vec::as_slice)).collect();
    let prepared = Connection::prepare(link, &list).await;
    let prepared = prepared.map_err(|error| failure_of_error::<R>(&error))?;
    let params = statements.into_iter().map(|statement| {
        let params = statement.params.into_iter();
        params
            .map(|(position, _)| position)
            .collect::<Arc<[usize]>>()
    });
    let ready = prepared.into_iter().zip(params);
    Ok(ready
        .map(|(prepared, params)| Ready { prepared, params })
        .collect())
}
