//! Files that are no text, told by their first bytes, with what to do about each.

/// First bytes, what the file is, and how to get a table from it.
const KINDS: [(&[u8], &str, &str); 9] = [
    (b"PAR1", "a Parquet file", PARQUET),
    (
        b"ARROW1",
        "an Arrow (Feather) file",
        "import pandas; pandas.read_feather('FILE').to_csv('table.csv', index=False)",
    ),
    (b"PK\x03\x04", "an Excel workbook or another zip archive", EXCEL),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", EXCEL),
    (
        b"SQLite format 3",
        "an SQLite database",
        "!export a table of it: sqlite3 -header -csv FILE \"select * from TABLE\" > table.csv",
    ),
    (b"\x28\xb5\x2f\xfd", "packed by zstd", "!unpack it first: zstd -d FILE"),
    (b"BZh", "packed by bzip2", "!unpack it first: bunzip2 FILE"),
    (b"\xfd7zXZ", "packed by xz", "!unpack it first: unxz FILE"),
    (b"\x89HDF", "an HDF5 file", "import pandas; pandas.read_hdf('FILE').to_csv('table.csv', index=False)"),
];

const PARQUET: &str = "import pandas; pandas.read_parquet('FILE').to_csv('table.csv', index=False)";
const EXCEL: &str = "!if it is a workbook, save the sheet as \"CSV UTF-8\" in the spreadsheet program, or: python3 -c \
                     \"import pandas; pandas.read_excel('FILE').to_csv('table.csv', index=False)\"; unpack other archives";

/// What is wrong with a file of another kind, and what to do about it; `None` if it may be text.
pub(super) fn complaint(beginning: &[u8], file: &str) -> Option<String> {
    let (_, what, advice) = KINDS.iter().find(|(bytes, ..)| beginning.starts_with(bytes))?;
    let advice = match advice.strip_prefix('!') {
        Some(advice) => advice.to_string(),
        None => format!("convert it to CSV, such as: python3 -c \"{advice}\""),
    };
    Some(format!("this is {what}, and tables are read as text (CSV, TSV): {}", advice.replace("FILE", file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_are_told() {
        let parquet = complaint(b"PAR1\x15\x04", "a b.parquet").expect("told");
        assert!(
            parquet.contains("a Parquet file") && parquet.contains("read_parquet('a b.parquet')"),
            "{parquet}"
        );
        let excel = complaint(b"PK\x03\x04\x14", "t.xlsx").expect("told");
        assert!(excel.contains("Excel") && excel.contains("CSV UTF-8"), "{excel}");
        assert!(complaint(b"BZh91AY", "t.csv.bz2").expect("told").contains("bunzip2 t.csv.bz2"));
        assert_eq!(complaint(b"PAR,b\n1,2\n", "t.csv"), None);
    }
}
