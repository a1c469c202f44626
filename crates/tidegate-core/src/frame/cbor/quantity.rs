use super::reader::CborReader;
use super::writer::CborWriter;
use crate::frame::error::RecordFault;
use crate::usage::{QuantityError, parse_quantity, quantity_of_parts};
use minicbor::data::Type;
use rust_decimal::Decimal;

/// Tag of a decimal fraction: `[exponent, mantissa]` follows.
const DECIMAL_FRACTION: u64 = 4;

/// Writes the shortest form: an integer, else a decimal fraction, else (a mantissa above 63 bits) text.
pub(in crate::frame) fn write_quantity(writer: &mut CborWriter<'_>, quantity: Decimal) {
    let Ok(mantissa) = i64::try_from(quantity.mantissa()) else {
        return writer.text(quantity.array_string().as_ref());
    };
    if quantity.scale() == 0 {
        return writer.integer(mantissa);
    }
    writer.tag(DECIMAL_FRACTION);
    writer.array(2);
    writer.integer(-i64::from(quantity.scale()));
    writer.integer(mantissa);
}

/// Reads any of the three forms.
#[inline]
pub(in crate::frame) fn read_quantity(reader: &mut CborReader<'_>) -> Result<Decimal, RecordFault> {
    match reader.next_type() {
        Some(Type::U8 | Type::U16 | Type::U32 | Type::I8 | Type::I16 | Type::I32) => {
            reader.integer("").map(Decimal::from).map_err(not_a_number)
        }
        Some(Type::U64 | Type::I64 | Type::Int) => {
            let value = reader.wide_integer("").map_err(not_a_number)?;
            Decimal::try_from_i128_with_scale(value, 0)
                .map_err(|_| RecordFault::Quantity(QuantityError::OutOfRange))
        }
        Some(Type::Tag) => read_fraction(reader),
        Some(Type::String) => {
            let text = reader.text("").map_err(not_a_number)?;
            parse_quantity(text.as_bytes()).map_err(RecordFault::Quantity)
        }
        Some(Type::F16 | Type::F32 | Type::F64) => Err(RecordFault::Float),
        _ => Err(RecordFault::Quantity(QuantityError::NotANumber)),
    }
}

fn read_fraction(reader: &mut CborReader<'_>) -> Result<Decimal, RecordFault> {
    if reader.tag("").map_err(not_a_number)? != DECIMAL_FRACTION {
        return Err(RecordFault::Quantity(QuantityError::NotANumber));
    }
    reader.array_of(2, "").map_err(not_a_number)?;
    let exponent = reader.integer("").map_err(not_a_number)?;
    let mantissa = reader.wide_integer("").map_err(not_a_number)?;
    quantity_of_parts(mantissa, exponent).map_err(RecordFault::Quantity)
}

fn not_a_number<E>(_: E) -> RecordFault {
    RecordFault::Quantity(QuantityError::NotANumber)
}
