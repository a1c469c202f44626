use std::fmt;

/// A number for a table, `-` where there is none, `never` where it is infinite.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.is_infinite() => "never".to_owned(),
        Some(value) => format!("{value:.digits$}"),
    }
}

/// A share as a number of per cent.
pub(crate) fn percent(share: Option<f64>) -> String {
    number(share.map(|share| share * 100.0), 1)
}

/// Writes a table in Markdown whose columns are as wide as their widest cell. The first so many columns are names,
/// and stand left; the others are numbers, and stand right.
pub(crate) fn table<const COLUMNS: usize>(
    f: &mut fmt::Formatter<'_>,
    head: [&str; COLUMNS],
    names: usize,
    cells: &[[String; COLUMNS]],
) -> fmt::Result {
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let of_cells = cells.iter().map(|row| row[column].chars().count()).max();
        of_cells.unwrap_or_default().max(head[column].chars().count())
    });
    let write_line = |f: &mut fmt::Formatter<'_>, cells: &[String; COLUMNS]| {
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if column < names {
                write!(f, "| {cell:width$} ")?;
            } else {
                write!(f, "| {cell:>width$} ")?;
            }
        }
        writeln!(f, "|")
    };
    write_line(f, &head.map(str::to_owned))?;
    let rules = std::array::from_fn(|column| {
        let width = widths[column];
        if column < names { "-".repeat(width) } else { format!("{}:", "-".repeat(width - 1)) }
    });
    write_line(f, &rules)?;
    cells.iter().try_for_each(|row| write_line(f, row))
}
