//! Mathematical functions, and functions of any type.

use super::*;
use functions::FloatFunc;

/// Functions of this family.
pub(super) static TABLE: &[Function] = table! {
    "abs": Func::Abs => (I2) I2, (I4) I4, (I8) I8, (F4) F4, (F8) F8, (NUM) NUM;
    "round": Func::Round => (F8) F8, (NUM) NUM, (NUM, I4) NUM;
    "trunc": Func::Trunc => (F8) F8, (NUM) NUM, (NUM, I4) NUM;
    "ceil" "ceiling": Func::Ceil => (F8) F8, (NUM) NUM;
    "floor": Func::Floor => (F8) F8, (NUM) NUM;
    "sign": Func::Sign => (F8) F8, (NUM) NUM;
    "sqrt": Func::Sqrt => (F8) F8, (NUM) NUM;
    "cbrt": Func::Cbrt => (F8) F8;
    "exp": Func::Exp => (F8) F8, (NUM) NUM;
    "ln": Func::Ln => (F8) F8, (NUM) NUM;
    "log": Func::Log => (F8) F8, (NUM) NUM, (NUM, NUM) NUM;
    "log10": Func::Log => (F8) F8, (NUM) NUM;
    "power" "pow": Func::Pow => (F8, F8) F8, (NUM, NUM) NUM;
    "mod": Func::Rem => (I2, I2) I2, (I4, I4) I4, (I8, I8) I8, (NUM, NUM) NUM;
    "div": Func::DivTrunc => (NUM, NUM) NUM;
    "gcd": Func::Gcd => (I4, I4) I4, (I8, I8) I8, (NUM, NUM) NUM;
    "lcm": Func::Lcm => (I4, I4) I4, (I8, I8) I8, (NUM, NUM) NUM;
    "factorial": Func::Factorial => (I8) NUM;
    "scale": Func::Scale => (NUM) I4;
    "min_scale": Func::MinScale => (NUM) I4;
    "trim_scale": Func::TrimScale => (NUM) NUM;
    "width_bucket": Func::WidthBucket => (F8, F8, F8, I4) I4, (NUM, NUM, NUM, I4) I4;
    "degrees": Func::Float(FloatFunc::Degrees) => (F8) F8;
    "radians": Func::Float(FloatFunc::Radians) => (F8) F8;
    "sin": Func::Float(FloatFunc::Sin) => (F8) F8;
    "cos": Func::Float(FloatFunc::Cos) => (F8) F8;
    "tan": Func::Float(FloatFunc::Tan) => (F8) F8;
    "cot": Func::Float(FloatFunc::Cot) => (F8) F8;
    "asin": Func::Float(FloatFunc::Asin) => (F8) F8;
    "acos": Func::Float(FloatFunc::Acos) => (F8) F8;
    "atan": Func::Float(FloatFunc::Atan) => (F8) F8;
    "atan2": Func::Float(FloatFunc::Atan2) => (F8, F8) F8;
    "sinh": Func::Float(FloatFunc::Sinh) => (F8) F8;
    "cosh": Func::Float(FloatFunc::Cosh) => (F8) F8;
    "tanh": Func::Float(FloatFunc::Tanh) => (F8) F8;
    "pi": Func::Float(FloatFunc::Pi) => () F8;
    "num_nulls": Func::NumNulls => (; ANY) I4;
    "num_nonnulls": Func::NumNonNulls => (; ANY) I4;
};
