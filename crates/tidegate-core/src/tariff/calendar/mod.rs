//! Local calendars: time zones, periods, weeks and dates as segments of nanoseconds.
//!
//! Uses the bundled time zone database. Must not know tariffs, prices or the current time.

mod days;
mod period;
mod segment;
mod time_text;
mod week;
mod zone;

pub use days::Days;
pub use period::Period;
pub(super) use segment::Segment;
pub use time_text::{LocalTime, TimeParseError, time_ns, time_text};
pub(super) use week::{DAY_MINUTES, Week, WeekPlan};
pub(super) use zone::Zone;
pub use zone::{UnknownZone, zone_names};
