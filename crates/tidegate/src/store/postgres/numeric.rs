use crate::store::sum::Sum;
use bytes::{BufMut as _, BytesMut};
use rust_decimal::Decimal;
use std::error::Error;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// Digits to the base of 10,000 after the point of a sum: 28 places.
const GROUPS_AFTER_POINT: i16 = 7;

const NEGATIVE: u16 = 0x4000;

/// A number as PostgreSQL's binary form of NUMERIC, exact.
#[derive(Debug)]
pub(super) struct Numeric {
    sum: Sum,
    /// Number of decimal places.
    places: u16,
}

// === impl Numeric ===

impl From<Decimal> for Numeric {
    fn from(number: Decimal) -> Self {
        Self { sum: Sum::from(number), places: number.scale() as u16 }
    }
}

impl From<Sum> for Numeric {
    fn from(sum: Sum) -> Self {
        Self { sum, places: 28 }
    }
}

impl ToSql for Numeric {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let (digits, negative) = self.sum.base_10_000();
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        let weight = digits.len() as i16 - GROUPS_AFTER_POINT - 1;
        out.put_u16((digits.len() - zeros) as u16);
        out.put_i16(if digits.is_empty() { 0 } else { weight });
        out.put_u16(if negative { NEGATIVE } else { 0 });
        out.put_u16(self.places);
        digits[zeros..].iter().rev().for_each(|digit| out.put_i16(*digit));
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::NUMERIC
    }

    to_sql_checked!();
}
