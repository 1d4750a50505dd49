//! The grammar of cron expressions: a recursive-descent parser from text to the values that each field allows.
//!
//! ```text
//! expression = [second] minute hour day-of-month month day-of-week [year]  |  "@daily" and its like
//! field      = "*" | item { "," item }
//! item       = value | range | range "/" step | "*/" step
//! range      = value "-" value, the second not below the first
//! value      = a number, or the name of a month or weekday in its own field
//! ```
//!
//! Day of month has `L`, `LW` and `15W` as items besides; day of week has `FRIL`, and `#1` to `#5` and `#L` after an item, and may
//! begin with `+`. Either may be `?`, which is `*`. Whatever is not in the grammar is refused with its field: nothing is dropped.

use jiff::civil::Date;

/// The last year that a field can name, and the last in which a match is searched.
pub(super) const LAST_YEAR: u16 = 5_000;

/// How to write one.
const ADVICE: &str = "write five fields (minute, hour, day of month, month, day of week), optionally with seconds \
                      before and a year after them, such as \"0 9 * * MON-FRI\"";

/// The longest text of an expression that is repeated to the user, in characters.
const SHOWN_CHARACTERS: usize = 80;

/// What stands for a whole expression.
const NICKNAMES: [(&str, &str); 6] = [
    ("@HOURLY", "0 * * * *"),
    ("@DAILY", "0 0 * * *"),
    ("@WEEKLY", "0 0 * * SUN"),
    ("@MONTHLY", "0 0 1 * *"),
    ("@YEARLY", "0 0 1 1 *"),
    ("@ANNUALLY", "0 0 1 1 *"),
];

/// A field: its name, its bounds, and the names of its values from `first_name` on.
struct Field {
    name: &'static str,
    min: u16,
    max: u16,
    first_name: u16,
    names: &'static [&'static str],
}

const SECOND: Field = Field { name: "second", min: 0, max: 59, first_name: 0, names: &[] };
const MINUTE: Field = Field { name: "minute", min: 0, max: 59, first_name: 0, names: &[] };
const HOUR: Field = Field { name: "hour", min: 0, max: 23, first_name: 0, names: &[] };
const DAY: Field = Field { name: "day of month", min: 1, max: 31, first_name: 0, names: &[] };
const MONTH: Field = Field {
    name: "month",
    min: 1,
    max: 12,
    first_name: 1,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
const WEEKDAY: Field = Field {
    name: "day of week",
    min: 0,
    max: 7,
    first_name: 0,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
};
const YEAR: Field = Field { name: "year", min: 1, max: LAST_YEAR, first_name: 0, names: &[] };

/// Values from one to another, each `step`th.
#[derive(Debug, Clone, Copy)]
struct Range {
    from: u16,
    to: u16,
    step: u16,
}

impl Range {
    fn values(self) -> impl Iterator<Item = u16> {
        (self.from..=self.to).step_by(usize::from(self.step))
    }
}

/// The values of a field that are below 64, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Values(u64);

impl Values {
    /// All from one value to another.
    pub fn all(from: u16, to: u16) -> Self {
        let mut values = Values::default();
        (from..=to).for_each(|value| values.add(value));
        values
    }

    fn add(&mut self, value: u16) {
        self.0 |= 1 << value;
    }

    pub fn has(self, value: i8) -> bool {
        self.0 >> value & 1 == 1
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The first value that is not below this one.
    pub fn from(self, value: i8) -> Option<i8> {
        let rest = self.0 >> value;
        (rest != 0).then(|| i8::try_from(rest.trailing_zeros()).ok().map(|steps| value + steps)).flatten()
    }

    pub fn iter(self) -> impl Iterator<Item = i64> {
        (0..64).filter(move |value| self.0 >> value & 1 == 1)
    }
}

/// Which days of a month.
#[derive(Debug, Clone, Default)]
pub(super) struct MonthDays {
    /// Days by number.
    pub values: Values,
    /// Days whose nearest weekday within the month is meant (`15W`).
    pub nearest: Values,
    /// The last day (`L`).
    pub last: bool,
    /// The last day from Monday to Friday (`LW`).
    pub last_weekday: bool,
}

/// Which days of a week, from Sunday, 0, to Saturday, 6.
#[derive(Debug, Clone, Default)]
pub(super) struct Weekdays {
    /// Every one of them.
    pub values: Values,
    /// Only the first, second and so on of a month (`FRI#2`).
    pub nth: [Values; 5],
    /// Only the last of a month (`FRIL`).
    pub last: Values,
}

/// What an expression allows, field by field.
#[derive(Debug, Clone)]
pub(super) struct Expression {
    pub seconds: Values,
    pub minutes: Values,
    pub hours: Values,
    /// `None` for `*`.
    pub days: Option<MonthDays>,
    pub months: Values,
    /// `None` for `*`.
    pub weekdays: Option<Weekdays>,
    /// In order; `None` for `*`.
    pub years: Option<Vec<u16>>,
    /// Whether a day must match both day fields (`+`), and not either.
    pub needs_both_days: bool,
    /// The texts of the two day fields, if cron implementations disagree about them.
    disputed: Option<[String; 2]>,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong, with the field, and how to write one.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(&text.to_ascii_uppercase()).map_err(|problem| {
            let shown: String = text.chars().take(SHOWN_CHARACTERS).collect();
            format!("{shown:?} is not a cron expression: {problem}; {ADVICE}")
        })
    }

    fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let text = match NICKNAMES.iter().find(|(nickname, _)| *nickname == text) {
            Some((_, meaning)) => meaning,
            None if text.starts_with('@') => {
                return Err("there are @hourly, @daily, @weekly, @monthly, @yearly and @annually".to_owned());
            }
            None => text,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let (second, [minute, hour, day, month, weekday], year) = match *fields.as_slice() {
            [] => return Err("it is empty".to_owned()),
            [a, b, c, d, e] => ("0", [a, b, c, d, e], "*"),
            [second, a, b, c, d, e] => (second, [a, b, c, d, e], "*"),
            [second, a, b, c, d, e, year] => (second, [a, b, c, d, e], year),
            [_] => return Err("it has 1 field".to_owned()),
            _ => return Err(format!("it has {} fields", fields.len())),
        };
        let (needs_both_days, weekday) = match weekday.strip_prefix('+') {
            Some(rest) => (true, rest),
            None => (false, weekday),
        };
        let (day, weekday) = (star_for_question_mark(day), star_for_question_mark(weekday));
        let is_disputed = !needs_both_days
            && day != "*"
            && weekday != "*"
            && (day.starts_with('*') || weekday.starts_with('*'));
        Ok(Expression {
            seconds: SECOND.values(second)?,
            minutes: MINUTE.values(minute)?,
            hours: HOUR.values(hour)?,
            days: month_days(&day)?,
            months: MONTH.values(month)?,
            weekdays: weekdays(&weekday)?,
            years: years(year)?,
            needs_both_days,
            disputed: is_disputed.then_some([day, weekday]),
        })
    }

    /// What a user should know who expects another meaning.
    pub fn warning(&self) -> Option<String> {
        let [day, weekday] = self.disputed.as_ref()?;
        Some(format!(
            "cron_expr: day of month {day:?} and day of week {weekday:?} are both given, so a day counts when either matches; \
             Vixie cron wants both to match if one begins with \"*\". Write \"+{weekday}\" for both"
        ))
    }

    pub fn matches_year(&self, year: i16) -> bool {
        let Ok(year) = u16::try_from(year) else { return false };
        match &self.years {
            None => (YEAR.min..=YEAR.max).contains(&year),
            Some(years) => years.binary_search(&year).is_ok(),
        }
    }

    /// Whether the two day fields allow a date.
    pub fn matches_day(&self, date: Date) -> bool {
        match (&self.days, &self.weekdays) {
            (None, None) => true,
            (Some(days), None) => days.has(date),
            (None, Some(weekdays)) => weekdays.has(date),
            (Some(days), Some(weekdays)) if self.needs_both_days => days.has(date) && weekdays.has(date),
            (Some(days), Some(weekdays)) => days.has(date) || weekdays.has(date),
        }
    }
}

impl MonthDays {
    fn has(&self, date: Date) -> bool {
        let (day, last) = (date.day(), date.days_in_month());
        let near = (day - 2).max(1)..=(day + 2).min(last);
        self.values.has(day)
            || (self.last && day == last)
            || (self.last_weekday && day == nearest_weekday(date, last))
            || near
                .filter(|wanted| self.nearest.has(*wanted))
                .any(|wanted| nearest_weekday(date, wanted) == day)
    }
}

/// The day from Monday to Friday that is nearest to a day of the month of a date, within that month.
fn nearest_weekday(date: Date, day: i8) -> i8 {
    let weekday =
        (i16::from(date.weekday().to_sunday_zero_offset()) + i16::from(day - date.day())).rem_euclid(7);
    match weekday {
        // Sunday: the Monday after it, or the Friday before it.
        0 if day < date.days_in_month() => day + 1,
        0 => day - 2,
        // Saturday: the Friday before it, or the Monday after it.
        6 if day > 1 => day - 1,
        6 => day + 2,
        _ => day,
    }
}

impl Weekdays {
    fn has(&self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        let nth = usize::from((date.day() - 1).unsigned_abs() / 7);
        self.values.has(weekday)
            || self.nth.get(nth).is_some_and(|values| values.has(weekday))
            || (self.last.has(weekday) && date.day() + 7 > date.days_in_month())
    }

    fn add(values: &mut Values, range: Range) {
        range.values().for_each(|day| values.add(day % 7));
    }
}

fn star_for_question_mark(field: &str) -> String {
    field.strip_prefix('?').map_or_else(|| field.to_owned(), |rest| format!("*{rest}"))
}

fn month_days(text: &str) -> Result<Option<MonthDays>, String> {
    if text == "*" {
        return Ok(None);
    }
    let mut days = MonthDays::default();
    DAY.each_item(text, |item| {
        match item {
            "L" => days.last = true,
            "LW" => days.last_weekday = true,
            _ => match item.strip_suffix('W') {
                Some(day) => days.nearest.add(DAY.value(day)?),
                None => DAY.range(item)?.values().for_each(|day| days.values.add(day)),
            },
        }
        Ok(())
    })?;
    Ok(Some(days))
}

fn weekdays(text: &str) -> Result<Option<Weekdays>, String> {
    if text == "*" {
        return Ok(None);
    }
    let mut days = Weekdays::default();
    WEEKDAY.each_item(text, |item| {
        if item == "L" {
            return Err("L needs a weekday before it, as in FRIL".to_owned());
        }
        match (item.split_once('#'), item.strip_suffix('L')) {
            (Some((range, "L")), _) => Weekdays::add(&mut days.last, WEEKDAY.range(range)?),
            (Some((range, nth)), _) => {
                let nth = nth.parse::<usize>().ok().filter(|_| nth.len() == 1);
                let values = nth.and_then(|nth| days.nth.get_mut(nth.checked_sub(1)?));
                let values = values.ok_or("# needs a number from 1 to 5 behind it, or L")?;
                Weekdays::add(values, WEEKDAY.range(range)?);
            }
            (None, Some(day)) => days.last.add(WEEKDAY.value(day)? % 7),
            (None, None) => Weekdays::add(&mut days.values, WEEKDAY.range(item)?),
        }
        Ok(())
    })?;
    Ok(Some(days))
}

fn years(text: &str) -> Result<Option<Vec<u16>>, String> {
    if text == "*" {
        return Ok(None);
    }
    let mut years = Vec::new();
    YEAR.each_item(text, |item| {
        years.extend(YEAR.range(item)?.values());
        Ok(())
    })?;
    years.sort_unstable();
    years.dedup();
    Ok(Some(years))
}

impl Field {
    /// The values of a field that has no items of its own.
    fn values(&self, text: &str) -> Result<Values, String> {
        if text == "*" {
            return Ok(Values::all(self.min, self.max));
        }
        let mut values = Values::default();
        self.each_item(text, |item| {
            self.range(item)?.values().for_each(|value| values.add(value));
            Ok(())
        })?;
        Ok(values)
    }

    /// Takes the items of a list one by one. Errors get the field.
    fn each_item(&self, text: &str, mut take: impl FnMut(&str) -> Result<(), String>) -> Result<(), String> {
        text.split(',').try_for_each(|item| {
            let taken = match item {
                "" => Err("a value is missing beside a comma".to_owned()),
                "*" => Err("* must stand alone in its field".to_owned()),
                item => take(item),
            };
            taken.map_err(|problem| format!("{text:?} cannot be the {}: {problem}", self.name))
        })
    }

    fn range(&self, text: &str) -> Result<Range, String> {
        let Some((range, step)) = text.split_once('/') else {
            return match text.split_once('-') {
                Some((from, to)) => self.bounds(from, to),
                None => self.value(text).map(|value| Range { from: value, to: value, step: 1 }),
            };
        };
        let whole = Range { from: self.min, to: self.max, step: 1 };
        let range = match (range, range.split_once('-')) {
            ("*", _) => whole,
            (_, Some((from, to))) => self.bounds(from, to)?,
            _ => {
                return Err(format!(
                    "a step needs * or a range before it, as in */{step} or {}-{}/{step}",
                    self.min, self.max
                ));
            }
        };
        let step = number(step)
            .filter(|step| *step > 0)
            .ok_or_else(|| format!("{step:?} is not a step; write a number of at least 1"))?;
        Ok(Range { step, ..range })
    }

    fn bounds(&self, from: &str, to: &str) -> Result<Range, String> {
        // Sunday is 0 at the beginning of a range and 7 at its end.
        let to_value = match to {
            "SUN" if self.name == WEEKDAY.name => 7,
            to => self.value(to)?,
        };
        let range = Range { from: self.value(from)?, to: to_value, step: 1 };
        if range.from > range.to {
            return Err(format!(
                "a range goes upwards, and {from}-{to} does not; write two ranges with a comma between them"
            ));
        }
        Ok(range)
    }

    fn value(&self, text: &str) -> Result<u16, String> {
        if let Some(place) = self.names.iter().position(|name| *name == text) {
            return Ok(self.first_name + u16::try_from(place).unwrap_or_default());
        }
        let value = number(text).filter(|value| (self.min..=self.max).contains(value));
        value.ok_or_else(|| {
            let names = match self.names {
                [first, .., last] => format!(", or {first} to {last}"),
                _ => String::new(),
            };
            format!("{text:?} is not a number from {} to {}{names}", self.min, self.max)
        })
    }
}

/// Digits only: no sign, no spaces.
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
