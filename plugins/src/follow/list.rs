//! Streams files of addresses: one per line, or in a column of a CSV file.

use std::io::{BufRead, Read};

/// Longest line or row of a list.
const LINE_BYTES: u64 = 1024 * 1024;

/// An address of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedAddress {
    /// Name of the locator. The address itself if the list has no name.
    pub name: String,
    /// The address.
    pub url: String,
}

/// Iterates over the addresses of a list. Ends after the first error.
pub struct UrlList<R> {
    lines: ListLines<R>,
    table: Option<CsvColumns>,
    broken: bool,
}

struct CsvColumns {
    delimiter: u8,
    url: usize,
    name: Option<usize>,
}

struct ListLines<R> {
    reader: R,
    number: u64,
}

impl<R: BufRead> UrlList<R> {
    /// Opens a list of lines, or a CSV file if `column` is given. Reads the header of a CSV file,
    /// and fails if a column is missing.
    pub fn open(reader: R, column: Option<&str>, name: Option<&str>) -> Result<Self, String> {
        let mut lines = ListLines { reader, number: 0 };
        let Some(column) = column else {
            return Ok(Self { lines, table: None, broken: false });
        };
        let header = lines.record()?.unwrap_or_default();
        let delimiter = delimiter(&header);
        let titles = fields(&header, delimiter)?;
        let place = |wanted: &str| {
            titles.iter().position(|title| title.trim() == wanted).ok_or_else(|| {
                let there: Vec<&str> = titles.iter().map(|title| title.trim()).collect();
                format!("no column `{wanted}`; the columns are `{}`", there.join("`, `"))
            })
        };
        let table =
            CsvColumns { delimiter, url: place(column)?, name: name.map(place).transpose()? };
        Ok(Self { lines, table: Some(table), broken: false })
    }

    fn step(&mut self) -> Result<Option<ListedAddress>, String> {
        loop {
            let Some(line) = (match &self.table {
                Some(_) => self.lines.record()?,
                None => self.lines.line()?,
            }) else {
                return Ok(None);
            };
            let (url, name) = match &self.table {
                None => {
                    let url = line.trim();
                    (if url.starts_with('#') { "" } else { url }.to_owned(), None)
                }
                Some(table) => {
                    let cells = fields(&line, table.delimiter)
                        .map_err(|error| format!("line {}: {error}", self.lines.number))?;
                    let cell = |at: usize| cells.get(at).map_or("", |cell| cell.trim()).to_owned();
                    (cell(table.url), table.name.map(cell))
                }
            };
            if !url.is_empty() {
                let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| url.clone());
                return Ok(Some(ListedAddress { name, url }));
            }
        }
    }
}

impl<R: BufRead> Iterator for UrlList<R> {
    type Item = Result<ListedAddress, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken {
            return None;
        }
        let step = self.step();
        self.broken = step.is_err();
        step.transpose()
    }
}

impl<R: BufRead> ListLines<R> {
    /// Reads the next line, without its line end.
    fn line(&mut self) -> Result<Option<String>, String> {
        self.number += 1;
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(LINE_BYTES + 1).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| format!("line {}: {error}", self.number))?;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 > LINE_BYTES {
            return Err(format!("line {} is longer than 1 MiB", self.number));
        }
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let bytes =
            bytes.strip_prefix(b"\xef\xbb\xbf").filter(|_| self.number == 1).unwrap_or(bytes);
        match std::str::from_utf8(bytes) {
            Ok(line) => Ok(Some(line.to_owned())),
            Err(_) => Err(format!("line {} is not UTF-8", self.number)),
        }
    }

    /// Reads the next row of a CSV file. Quoted cells may have several lines.
    fn record(&mut self) -> Result<Option<String>, String> {
        let Some(mut record) = self.line()? else {
            return Ok(None);
        };
        let begun = self.number;
        while !record.matches('"').count().is_multiple_of(2) {
            let Some(line) = self.line()? else {
                return Err(format!("the quote that opens in line {begun} is not closed"));
            };
            record.push('\n');
            record.push_str(&line);
            if record.len() as u64 > LINE_BYTES {
                return Err(format!("the row that starts in line {begun} is longer than 1 MiB"));
            }
        }
        Ok(Some(record))
    }
}

/// Guesses the delimiter: a comma, unless the header has more semicolons or tabs.
fn delimiter(header: &str) -> u8 {
    let count = |delimiter: u8| header.bytes().filter(|byte| *byte == delimiter).count();
    let rivals = [b';', b'\t'].into_iter().max_by_key(|rival| count(*rival)).unwrap_or(b',');
    if count(rivals) > count(b',') { rivals } else { b',' }
}

/// Splits a row into cells.
fn fields(row: &str, delimiter: u8) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .delimiter(delimiter)
        .from_reader(row.as_bytes());
    let record = reader.records().next().transpose().map_err(|error| error.to_string())?;
    Ok(record.map_or_else(Vec::new, |record| record.iter().map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], column: Option<&str>, name: Option<&str>) -> Vec<String> {
        let list = match UrlList::open(text, column, name) {
            Ok(list) => list,
            Err(error) => return vec![error],
        };
        let shown = list.map(|item| match item {
            Ok(ListedAddress { name, url }) if name == url => url,
            Ok(ListedAddress { name, url }) => format!("{name}: {url}"),
            Err(error) => error,
        });
        shown.collect()
    }

    #[test]
    fn a_list_has_one_address_per_line() {
        let text = b"\xef\xbb\xbfhttp://h/1\r\n\r\n  # a comment\n http://h/2 \nhttp://h/3";
        assert_eq!(read(text, None, None), ["http://h/1", "http://h/2", "http://h/3"]);
        assert_eq!(read(b"", None, None), Vec::<String>::new());
        assert_eq!(read(b"a\n\xff\nb", None, None), ["a", "line 2 is not UTF-8"]);
    }

    #[test]
    fn a_csv_file_has_addresses_and_names_in_columns() {
        let text =
            b"\xef\xbb\xbftitle, url\r\n\"a, \"\"b\"\"\nc\",http://h/1\r\n,http://h/2\nx,\nlast";
        assert_eq!(read(text, Some("url"), None), ["http://h/1", "http://h/2"]);
        assert_eq!(
            read(text, Some("url"), Some("title")),
            ["a, \"b\"\nc: http://h/1", "http://h/2"]
        );
        assert_eq!(read(b"n;u\n1;a,b\n", Some("u"), Some("n")), ["1: a,b"]);
        assert_eq!(read(b"n\tu\n1\tx\n", Some("u"), Some("n")), ["1: x"]);
    }

    #[test]
    fn errors_name_the_column_or_line() {
        let text = b"title,link\na,b\n";
        let words = "no column `url`; the columns are `title`, `link`";
        assert_eq!(read(text, Some("url"), None), [words]);
        assert_eq!(read(text, Some("link"), Some("name")).len(), 1);
        assert_eq!(
            read(b"u\n\"a\nb", Some("u"), None),
            ["the quote that opens in line 2 is not closed"]
        );
    }

    #[test]
    fn an_endless_line_is_refused() {
        let text = vec![b'a'; 3 * 1024 * 1024];
        assert_eq!(read(&text, None, None), ["line 1 is longer than 1 MiB"]);
    }
}
