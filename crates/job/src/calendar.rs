//! When a job starts on the calendar, and the date some time after that.
//!
//! A simulation knows no calendar: it counts from zero. Here that zero gets a date, in whatever zone the user
//! thinks in; a change to or from summer time on the way is not counted, since an offset does not know of it.

use std::fmt;

use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use jiff::{SignedDuration, Unit};
use pipestep_engine::Duration;

/// A date and time of day, in the zone that it was written in: with an offset from UTC, or in whatever time the
/// user's clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarStart {
    local: DateTime,
    offset: Option<Offset>,
}

/// A text that is no date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no date: expected one like `2026-03-01`, `2026-03-01T09:30` or `2026-03-01T09:30+01:00`")]
pub struct NotADate;

impl CalendarStart {
    /// Reads an ISO 8601 date, with or without a time of day (midnight without) and an offset from UTC.
    ///
    /// # Errors
    /// [`NotADate`] for anything else, and for a zone by name, whose rules change.
    pub fn parse(text: &str) -> Result<Self, NotADate> {
        let pieces = Pieces::parse(text.trim()).map_err(|_| NotADate)?;
        if pieces.time_zone_annotation().is_some() {
            return Err(NotADate);
        }
        let time = pieces.time().unwrap_or_default();
        Ok(Self { local: pieces.date().to_datetime(time), offset: pieces.to_numeric_offset() })
    }

    /// The date this long after, to the second; `None` past the year 9999.
    pub fn after(self, length: Duration) -> Option<Self> {
        let nanos = i64::try_from(length.as_nanos()).ok()?;
        let later = self.local.checked_add(SignedDuration::from_nanos(nanos)).ok()?;
        Some(Self { local: later.round(Unit::Second).ok()?, ..self })
    }

    /// Date, hour and minute, as people say it: `2026-03-25 15:11`.
    pub fn short(self) -> String {
        let rounded = self.local.round(Unit::Minute).unwrap_or(self.local);
        let (date, time) = (rounded.date(), rounded.time());
        format!("{date} {:02}:{:02}{}", time.hour(), time.minute(), self.zone())
    }

    fn zone(self) -> String {
        match self.offset {
            None => String::new(),
            Some(Offset::UTC) => "Z".to_owned(),
            Some(offset) => {
                let minutes = offset.seconds() / 60;
                let sign = if minutes < 0 { '-' } else { '+' };
                format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
            }
        }
    }
}

/// ISO 8601: `2026-03-25T15:11:07+01:00`.
impl fmt::Display for CalendarStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.local, self.zone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000_000_000;

    fn later(text: &str, nanos: u64) -> String {
        CalendarStart::parse(text).unwrap().after(Duration::from_nanos(nanos)).unwrap().to_string()
    }

    #[test]
    fn months_and_leap_years_are_those_of_the_calendar() {
        // 2028 is a leap year, 2100 is not.
        assert_eq!(later("2028-02-28", 2 * DAY), "2028-03-01T00:00:00");
        assert_eq!(later("2100-02-28", DAY), "2100-03-01T00:00:00");
        assert_eq!(later("2026-12-31T23:59:30", 31_500_000_000), "2027-01-01T00:00:02");
        // 24.636648533576864 days of the design case.
        assert_eq!(later("2026-03-01", 2_128_606_433_301_041), "2026-03-25T15:16:46");
    }

    #[test]
    fn an_offset_is_kept_as_it_was_written() {
        assert_eq!(later("2026-03-01T09:30Z", DAY), "2026-03-02T09:30:00Z");
        assert_eq!(later("2026-03-01 09:30:00-03:30", DAY), "2026-03-02T09:30:00-03:30");
        assert_eq!(CalendarStart::parse("2026-03-01T09:30+01:00").unwrap().short(), "2026-03-01 09:30+01:00");
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in
            ["", "tomorrow", "2026-02-30", "2026-03-01T25:00", "09:30", "2026-03-01T09:30[Europe/Paris]"]
        {
            assert_eq!(CalendarStart::parse(text), Err(NotADate), "{text}");
        }
        let late = CalendarStart::parse("9999-12-31").unwrap();
        assert_eq!(late.after(Duration::from_nanos(2 * DAY)), None);
    }
}
