//! Medians, and tables for the terminal.

/// The median, or nothing of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(values[middle - 1].midpoint(values[middle])),
    }
}

/// A value with three digits, its thousands apart.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if size < 100.0 {
        let places = if size < 10.0 { 2 } else { 1 };
        return format!("{value:.places$}");
    }
    let unit = 10f64.powf(size.log10().floor() - 2.0).max(1.0);
    let digits = format!("{:.0}", (value / unit).round() * unit);
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 && digit.is_ascii_digit() {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The same, or a dash.
pub fn or_dash(value: Option<f64>) -> String {
    value.map_or("–".into(), short)
}

/// A table in Markdown's form, which a terminal shows as well: the first column to the left, the others to
/// the right.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..head.len())
        .map(|i| rows.iter().map(|row| width(&row[i])).chain([width(head[i]), 3]).max().unwrap_or(3))
        .collect();
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<String> = cells
            .enumerate()
            .map(|(i, cell)| {
                let room = " ".repeat(widths[i] - width(&cell));
                if i == 0 { cell + &room } else { room + &cell }
            })
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(&mut head.iter().map(|cell| cell.to_string()));
    text += &line(
        &mut widths.iter().enumerate().map(
            |(i, &n)| {
                if i == 0 { "-".repeat(n) } else { "-".repeat(n - 1) + ":" }
            },
        ),
    );
    for row in rows {
        text += &line(&mut row.iter().cloned());
    }
    text
}
