//! Instructions of a body.

/// Number of a variable of its program.
pub type VarNo = usize;

/// Number of a fragment of its program.
pub type FragmentNo = usize;

/// Number of a loop over rows.
pub type LoopNo = usize;

/// Place of an instruction.
pub(crate) type Place = usize;

/// The variable FOUND.
pub const FOUND: VarNo = 0;

/// A text of SQL, and what it may read.
#[derive(Clone, PartialEq, Debug)]
pub struct Fragment {
    /// The statement; an expression is the SELECT of it.
    pub sql: String,
    /// The line of the body in which it begins, from 1.
    pub line: u32,
    /// Whether it is an expression: one value is wanted of it.
    pub is_value: bool,
    /// What its names may mean, apart from columns.
    pub reads: Vec<Read>,
}

/// A name in a text that a variable may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Read {
    /// The variable.
    pub var: VarNo,
    /// The label or record in front of the name.
    pub qualifier: Option<String>,
    /// The name: of the variable, or of a field.
    pub name: String,
    /// It is the field of a record of this name.
    pub is_field: bool,
    /// It is a record with no field behind it.
    pub is_whole: bool,
}

/// What a variable is declared as.
#[derive(Clone, PartialEq, Debug)]
pub enum Declared {
    /// A type by its name: the fragment is a NULL of the type.
    Named(FragmentNo),
    /// The type of a column: the fragment gives it.
    Column(FragmentNo),
    /// The type of another variable.
    Like(VarNo),
    /// `integer`, of FOR.
    Integer,
    /// `text`
    Text,
    /// `boolean`
    Boolean,
    /// Any row.
    Record,
    /// A row of a relation: the fragment gives its columns.
    Row(FragmentNo),
}

/// A variable.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type.
    pub declared: Declared,
    /// Whether it may be NULL.
    pub not_null: bool,
    /// The last word of its type's name, for what the catalog alone knows of it.
    pub type_name: Option<String>,
}

/// Where a value goes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Target {
    Variable(VarNo),
    Field(VarNo, String),
}

/// Where a row goes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Into {
    pub(crate) targets: Vec<Target>,
    pub(crate) strict: bool,
}

/// A row source.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Source {
    Static(FragmentNo),
    Dynamic {
        text: FragmentNo,
        using: Vec<FragmentNo>,
    },
}

/// What GET DIAGNOSTICS tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fact {
    RowCount,
    State,
    Message,
    Detail,
    Hint,
    Context,
    Column,
    Constraint,
    Table,
    /// What errors here do not name.
    Nothing,
}

/// How loud a RAISE is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Told only to those who ask for it.
    Debug,
    /// For the log.
    Log,
    /// INFO
    Info,
    /// NOTICE
    Notice,
    /// WARNING
    Warning,
    /// An error.
    Exception,
}

/// An option of RAISE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RaiseOption {
    Message,
    Detail,
    Hint,
    State,
    Column,
    Constraint,
    Table,
    /// Taken, and told to nobody: errors here have no such field.
    Untold,
}

/// RAISE.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Raise {
    pub(crate) level: Level,
    /// The text, cut at its marks: between two parts stands an argument.
    pub(crate) parts: Option<Vec<String>>,
    pub(crate) args: Vec<FragmentNo>,
    /// The code and name of a condition.
    pub(crate) condition: Option<(String, String)>,
    pub(crate) options: Vec<(RaiseOption, FragmentNo)>,
}

/// Which errors a handler takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// All but 57014 and P0004.
    Others,
    State(String),
    /// All of a class.
    Class(String),
}

/// One WHEN of an EXCEPTION.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Arm {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) to: Place,
}

/// The handlers of a block.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Handlers {
    pub(crate) arms: Vec<Arm>,
    /// SQLSTATE and SQLERRM of the block.
    pub(crate) state: VarNo,
    pub(crate) message: VarNo,
}

/// An instruction.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Op {
    /// Sets a variable to NULL.
    Reset(VarNo),
    Assign(Target, FragmentNo),
    Jump(Place),
    /// Jumps unless the value is true.
    Unless(FragmentNo, Place),
    Run(FragmentNo, Option<Into>),
    /// PERFORM.
    Perform(FragmentNo),
    Execute(Source, Option<Into>),
    /// The bounds of a FOR over integers: from, to, step.
    Count {
        of: usize,
        bounds: [Option<FragmentNo>; 3],
        reverse: bool,
    },
    /// The next number, or jumps.
    NextNumber {
        of: usize,
        var: VarNo,
        end: Place,
    },
    /// Has the rows of a FOR come.
    Open(LoopNo, Source),
    NextRow {
        of: LoopNo,
        targets: Vec<Target>,
        end: Place,
    },
    /// A loop has ended: FOUND tells whether it had a turn.
    LoopedNumbers(usize),
    LoopedRows(LoopNo),
    /// Enters a block with handlers, which stands in so many others: a savepoint.
    Enter {
        handlers: usize,
        level: usize,
    },
    /// Leaves all blocks and handlers that are deeper.
    Unwind(usize),
    /// Leaves it: the savepoint goes.
    Leave,
    /// Ends a handler.
    Handled,
    Raise(Box<Raise>),
    /// RAISE without anything.
    RaiseAgain,
    /// A CASE has no arm for its value.
    NoCase,
    Diagnostics(Vec<(Target, Fact)>),
    Return,
}

/// A compiled body.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Program {
    pub(crate) ops: Vec<Op>,
    /// The line of each instruction.
    pub(crate) lines: Vec<u32>,
    pub(crate) handlers: Vec<Handlers>,
    /// Number of loops over integers.
    pub(crate) counts: usize,
    /// Number of loops over rows.
    pub(crate) loops: usize,
    /// Texts of SQL.
    pub fragments: Vec<Fragment>,
    /// Variables.
    pub variables: Vec<Variable>,
}

impl Op {
    /// The values that it needs, in their order.
    pub(crate) fn values(&self) -> Vec<FragmentNo> {
        match self {
            Op::Assign(_, value) | Op::Unless(value, _) => vec![*value],
            Op::Execute(Source::Dynamic { text, using }, _)
            | Op::Open(_, Source::Dynamic { text, using }) => core::iter::once(*text)
                .chain(using.iter().copied())
                .collect(),
            Op::Count { bounds, .. } => bounds.iter().flatten().copied().collect(),
            Op::Raise(raise) => {
                let options = raise.options.iter().map(|(_, value)| *value);
                raise.args.iter().copied().chain(options).collect()
            }
            Op::Reset(_)
            | Op::Jump(_)
            | Op::Run(..)
            | Op::Perform(_)
            | Op::Execute(Source::Static(_), _)
            | Op::NextNumber { .. }
            | Op::Open(_, Source::Static(_))
            | Op::NextRow { .. }
            | Op::LoopedNumbers(_)
            | Op::LoopedRows(_)
            | Op::Enter { .. }
            | Op::Unwind(_)
            | Op::Leave
            | Op::Handled
            | Op::RaiseAgain
            | Op::NoCase
            | Op::Diagnostics(_)
            | Op::Return => Vec::new(),
        }
    }

    /// What PostgreSQL calls it where it tells the place of an error.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Op::Reset(_) | Op::Assign(..) => "assignment",
            Op::Unless(..) => "IF",
            Op::Run(..) => "SQL statement",
            Op::Perform(_) => "PERFORM",
            Op::Execute(..) => "EXECUTE",
            Op::Count { .. } | Op::NextNumber { .. } => "FOR with integer loop variable",
            Op::Open(_, Source::Static(_)) | Op::NextRow { .. } => "FOR over SELECT rows",
            Op::Open(_, Source::Dynamic { .. }) => "FOR over EXECUTE statement",
            Op::Raise(_) | Op::RaiseAgain => "RAISE",
            Op::NoCase => "CASE",
            Op::Diagnostics(_) => "GET DIAGNOSTICS",
            Op::Return => "RETURN",
            Op::Jump(_)
            | Op::LoopedNumbers(_)
            | Op::LoopedRows(_)
            | Op::Enter { .. }
            | Op::Unwind(_)
            | Op::Leave
            | Op::Handled => "statement block",
        }
    }
}
