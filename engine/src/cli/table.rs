//! Prints rows as a table.

/// The greatest width of a column. Longer values are cut.
const WIDTH_MAX: usize = 40;

/// The header, a rule and the rows, in columns.
pub(super) fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let cut = |cell: &String| {
        let line = cell.replace(['\n', '\r', '\t'], " ");
        if line.chars().count() <= WIDTH_MAX {
            return line;
        }
        line.chars().take(WIDTH_MAX - 1).chain(['\u{2026}']).collect()
    };
    let cells: Vec<Vec<String>> = std::iter::once(header)
        .chain(rows.iter().map(Vec::as_slice))
        .map(|row| row.iter().map(cut).collect())
        .collect();
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let widths =
            cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut text = String::new();
    for (place, row) in cells.iter().enumerate() {
        text.push_str(&line(row));
        if place == 0 {
            text.push_str(&line(&rule));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let words = |row: &[&str]| row.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let text =
            table(&words(&["title", "price"]), &[words(&["Oat tin", "3.10"]), words(&["é", ""])]);
        assert_eq!(text, "title    price\n-------  -----\nOat tin  3.10\né\n");
    }
}
