//! Rows of functions in FROM.

use super::source::Rows;
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Slots};
use base::{Datum, RowBatch, SqlError, SqlState, Type};
use bind::rel::TableFunction;
use expr::rows::{datum_heap_bytes, datums_heap_bytes};
use expr::{Env, Expr, Func, NoColumns, RowsCursor, eval, zoned};
use txn::OpError;

pub(super) struct FunctionRows<'a> {
    cx: &'a Cx<'a>,
    function: TableFunction,
    args: &'a [Expr],
    ty: Type,
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
    Numbers {
        next: Datum,
        stop: Datum,
        step: Datum,
        up: bool,
    },
    Done,
}

impl Series {
    /// The next row of parts, or of arrays side by side.
    fn next_row(&mut self) -> Result<Option<Vec<Datum>>, SqlError> {
        match self {
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
}

impl<'a> FunctionRows<'a> {
    /// The rows of a call in columns of these types: one more than the function has, if rows are
    /// numbered.
    pub(super) fn new(
        cx: &'a Cx<'a>,
        function: TableFunction,
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
            slots: slots.clone(),
            state: None,
            zone: (ty == Type::Timestamptz(None))
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
        Ok(match self.function {
            TableFunction::Scalar => Series::Values(args.into_iter()),
            TableFunction::Json(rows) => {
                let value = args.into_iter().next().unwrap_or_default();
                Series::Parts(RowsCursor::new(rows, value)?)
            }
            TableFunction::Unnest => match args.into_iter().next() {
                Some(Datum::Array(items)) => Series::Values(items.into_vec().into_iter()),
                _ => Series::Done,
            },
            TableFunction::Unnests(_) => Series::Beside(
                args.into_iter()
                    .map(|arg| match arg {
                        Datum::Array(items) => items.into_vec().into_iter(),
                        _ => Vec::new().into_iter(),
                    })
                    .collect(),
            ),
            TableFunction::Series if args.iter().any(Datum::is_null) => Series::Done,
            TableFunction::Series => {
                let mut args = args.into_iter();
                let next = args.next().expect("a series has a start");
                let stop = args.next().expect("a series has an end");
                let step = args.next().unwrap_or(match self.ty {
                    Type::Numeric(_) => Datum::Decimal(base::Decimal::ONE),
                    _ => Datum::Int(1),
                });
                let sign = match &step {
                    Datum::Int(value) => value.signum() as i128,
                    Datum::Decimal(value) => value.signum().unscaled(),
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
                Series::Values(values) => match values.next() {
                    Some(value) => {
                        bytes += datum_heap_bytes(&value);
                        self.push(&mut out, [value]);
                    }
                    None => state = Series::Done,
                },
                Series::Parts(_) | Series::Beside(_) => match state.next_row()? {
                    Some(values) => {
                        bytes += datums_heap_bytes(&values);
                        self.push(&mut out, values);
                    }
                    None => state = Series::Done,
                },
                Series::Numbers {
                    next,
                    stop,
                    step,
                    up,
                } => {
                    let order = next.compare(stop);
                    if (*up && order.is_gt()) || (!*up && order.is_lt()) {
                        state = Series::Done;
                        continue;
                    }
                    self.push(&mut out, [next.clone()]);
                    if let (Type::Timestamptz(_), Some(zone)) = (self.ty, &self.zone) {
                        match zoned::step(next, step, zone) {
                            Ok(value) => *next = value,
                            Err(_) => state = Series::Done,
                        }
                        continue;
                    }
                    let step_ty = if matches!(step, Datum::Interval(_)) {
                        Type::Interval
                    } else {
                        self.ty
                    };
                    let sum = Expr::Call(
                        Func::Add,
                        vec![
                            Expr::Const(next.clone(), self.ty),
                            Expr::Const(step.clone(), step_ty),
                        ],
                        self.ty,
                    );
                    match eval(&sum, &NoColumns, &Env::NONE) {
                        Ok(value) => *next = value,
                        // The end of the type ends the series.
                        Err(_) => state = Series::Done,
                    }
                }
            }
        }
        self.state = Some(state);
        self.cx.breathe(out.rows as usize).await;
        Ok((out.rows > 0).then_some(out))
    }
}
