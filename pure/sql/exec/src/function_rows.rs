//! Rows of functions in FROM.

use super::source::Rows;
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Slots};
use base::{Datum, RowBatch, SqlError, SqlState, Type};
use bind::rel::TableFunction;
use expr::rows::{datum_heap_bytes, datums_heap_bytes};
use expr::{Env, Expr, Func, NoColumns, RowsCursor, eval, zoned};
use functions::string::regexp_matches;
use txn::OpError;

pub(super) struct FunctionRows<'a> {
    cx: &'a Cx<'a>,
    function: &'a TableFunction,
    args: &'a [Expr],
    ty: Type,
    types: &'a [Type],
    slots: Slots,
    state: Option<Series>,
    /// The session's time zone, for series of moments; `None` is UTC.
    zone: Option<String>,
    charge: Charge<'a>,
    /// Number of the row before, if rows are numbered.
    number: Option<i64>,
}

/// What a function has still to give.
enum Series {
    Values(std::vec::IntoIter<Datum>),
    Parts(RowsCursor),
    Beside(Vec<std::vec::IntoIter<Datum>>),
    /// Several functions, each with its number of columns and the type of the first one.
    Together(Vec<(Series, usize, Type)>),
    Numbers {
        next: Datum,
        stop: Datum,
        step: Datum,
        up: bool,
    },
    Done,
}

impl Series {
    /// The next row of parts, of arrays or functions side by side.
    fn next_row(&mut self, zone: Option<&str>) -> Result<Option<Vec<Datum>>, SqlError> {
        match self {
            Series::Together(all) => {
                let (mut row, mut is_there) = (Vec::new(), false);
                for (series, width, ty) in all {
                    let values = match series {
                        Series::Parts(_) | Series::Beside(_) => series.next_row(zone)?,
                        _ => series.next_value(*ty, zone).map(|value| vec![value]),
                    };
                    match values {
                        Some(values) => {
                            is_there = true;
                            row.extend(values);
                        }
                        None => {
                            *series = Series::Done;
                            row.extend(vec![Datum::Null; *width]);
                        }
                    }
                }
                Ok(is_there.then_some(row))
            }
            Series::Parts(cursor) => cursor.next_row(),
            Series::Beside(all) if all.iter().any(|values| values.len() > 0) => {
                let next = all.iter_mut().map(Iterator::next);
                Ok(Some(next.map(Option::unwrap_or_default).collect()))
            }
            Series::Beside(_) | Series::Values(_) | Series::Numbers { .. } | Series::Done => {
                Ok(None)
            }
        }
    }

    /// The next value of a series of this type, or of an array.
    fn next_value(&mut self, ty: Type, zone: Option<&str>) -> Option<Datum> {
        match self {
            Series::Values(values) => values.next(),
            Series::Numbers {
                next,
                stop,
                step,
                up,
            } => {
                let order = next.compare(stop);
                if (*up && order.is_gt()) || (!*up && order.is_lt()) {
                    return None;
                }
                let after = following(next, step, ty, zone);
                let value = match after {
                    Some(after) => core::mem::replace(next, after),
                    // The end of the type ends the series.
                    None => {
                        let last = core::mem::take(next);
                        *self = Series::Done;
                        last
                    }
                };
                Some(value)
            }
            _ => None,
        }
    }
}

/// What follows a value of a series; `None`: the type ends before.
fn following(value: &Datum, step: &Datum, ty: Type, zone: Option<&str>) -> Option<Datum> {
    if let (Type::Timestamptz(_), Some(zone)) = (ty, zone) {
        return zoned::step(value, step, zone).ok();
    }
    let step_ty = if matches!(step, Datum::Interval(_)) {
        Type::Interval(None)
    } else {
        ty
    };
    let sum = Expr::Call(
        Func::Add,
        vec![
            Expr::Const(value.clone(), ty),
            Expr::Const(step.clone(), step_ty),
        ],
        ty,
    );
    eval(&sum, &NoColumns, &Env::NONE).ok()
}

impl<'a> FunctionRows<'a> {
    /// The rows of a call in columns of these types: one more than the function has, if rows are
    /// numbered.
    pub(super) fn new(
        cx: &'a Cx<'a>,
        function: &'a TableFunction,
        args: &'a [Expr],
        types: &'a [Type],
        slots: &Slots,
    ) -> FunctionRows<'a> {
        let ty = types[0];
        FunctionRows {
            cx,
            function,
            args,
            ty,
            types,
            slots: slots.clone(),
            state: None,
            zone: types
                .contains(&Type::Timestamptz(None))
                .then(|| cx.env(slots).session.setting("timezone"))
                .flatten()
                .filter(|zone| !zoned::of_setting(Some(zone)).is_empty()),
            charge: Charge::new(cx.port),
            number: (types.len() > function.width()).then_some(0),
        }
    }

    /// Adds a row, with its number if it has one.
    fn push(&mut self, out: &mut RowBatch, values: impl IntoIterator<Item = Datum>) {
        let number = self.number.as_mut().map(|number| {
            *number += 1;
            Datum::Int(*number)
        });
        out.push(values.into_iter().chain(number));
    }

    fn start(&mut self) -> Result<Series, SqlError> {
        let mut args = Vec::new();
        for arg in self.args {
            let value = self.cx.value(arg, &self.slots)?;
            self.charge.add(datum_heap_bytes(&value))?;
            args.push(value);
        }
        let zone = self.cx.env(&self.slots).session.setting("timezone");
        if let TableFunction::Together(functions) = self.function {
            let functions = functions.clone();
            let mut args = args.into_iter();
            let (mut all, mut at) = (Vec::new(), 0);
            for (function, count) in functions.iter() {
                let own = args.by_ref().take(*count).collect();
                let ty = self.types[at];
                all.push((
                    series(function, own, ty, zone.as_deref())?,
                    function.width(),
                    ty,
                ));
                at += function.width();
            }
            return Ok(Series::Together(all));
        }
        let series = series(self.function, args, self.ty, zone.as_deref())?;
        match (self.function, &series) {
            (TableFunction::Matches, Series::Values(values)) => {
                self.charge.add(datums_heap_bytes(values.as_slice()))?;
            }
            (_, Series::Parts(cursor)) => self.charge.add(datums_heap_bytes(cursor.items()))?,
            _ => {}
        }
        Ok(series)
    }
}

/// What a function gives for these arguments; `ty`: the type of its first column; `zone`: the
/// session's time zone.
fn series(
    function: &TableFunction,
    args: Vec<Datum>,
    ty: Type,
    zone: Option<&str>,
) -> Result<Series, SqlError> {
    Ok(match function {
        TableFunction::Scalar => Series::Values(args.into_iter()),
        TableFunction::Json(rows) => Series::Parts(RowsCursor::new(*rows, args, zone)?),
        TableFunction::Unnest => match args.into_iter().next().map(Datum::into_items) {
            Some(Ok(items)) => Series::Values(items.into_iter()),
            _ => Series::Done,
        },
        TableFunction::Unnests(_) => Series::Beside(
            args.into_iter()
                .map(|arg| arg.into_items().unwrap_or_default().into_iter())
                .collect(),
        ),
        TableFunction::Matches if args.iter().any(Datum::is_null) => Series::Done,
        TableFunction::Matches => Series::Values(regexp_matches(&args)?.into_iter()),
        // These are taken apart before.
        TableFunction::Together(_) => Series::Done,
        TableFunction::Series if args.iter().any(Datum::is_null) => Series::Done,
        TableFunction::Series => {
            let mut args = args.into_iter();
            let next = args.next().expect("a series has a start");
            let stop = args.next().expect("a series has an end");
            let step = args.next().unwrap_or(match ty {
                Type::Numeric(_) => Datum::Decimal(base::Decimal::ONE),
                _ => Datum::Int(1),
            });
            for (value, what) in [
                (&next, "start value"),
                (&stop, "stop value"),
                (&step, "step size"),
            ] {
                let Datum::Large(value) = value else { continue };
                if !value.is_finite() {
                    let is = if value.is_nan() { "NaN" } else { "infinity" };
                    let message = format!("{what} cannot be {is}");
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
                }
            }
            let sign = match &step {
                Datum::Int(value) => value.signum() as i128,
                Datum::Decimal(value) => value.signum().unscaled(),
                Datum::Large(value) if value.is_negative() => -1,
                Datum::Interval(value) => value.total_micros().signum(),
                _ => 1,
            };
            if sign == 0 {
                let message = "step size cannot equal zero";
                return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
            }
            Series::Numbers {
                next,
                stop,
                step,
                up: sign > 0,
            }
        }
    })
}

impl Rows for FunctionRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        let mut state = match self.state.take() {
            Some(state) => state,
            None => self.start()?,
        };
        let width = self.function.width() + usize::from(self.number.is_some());
        let mut out = RowBatch::new(width);
        let mut bytes = 0;
        while (out.rows as usize) < BATCH_ROWS && bytes < BATCH_BYTES {
            match &mut state {
                Series::Done => break,
                Series::Values(_) | Series::Numbers { .. } => {
                    match state.next_value(self.ty, self.zone.as_deref()) {
                        Some(value) => {
                            bytes += datum_heap_bytes(&value);
                            self.push(&mut out, [value]);
                        }
                        None => state = Series::Done,
                    }
                }
                Series::Parts(_) | Series::Beside(_) | Series::Together(_) => {
                    match state.next_row(self.zone.as_deref())? {
                        Some(values) => {
                            bytes += datums_heap_bytes(&values);
                            self.push(&mut out, values);
                        }
                        None => state = Series::Done,
                    }
                }
            }
        }
        self.state = Some(state);
        self.cx.breathe(out.rows as usize).await;
        Ok((out.rows > 0).then_some(out))
    }
}
