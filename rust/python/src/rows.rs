//! Rows of a CSV file. `Rows` finds the counts and writes noisy counts in their place, while the
//! bytes arrive; all other cells are copied as they are. `columns` reads a published file.
//!
//! The dialect is RFC 4180: rows end with LF or CRLF, a cell that contains a delimiter, a line end
//! or a quote is quoted, and quotes in it are doubled. Stray quotes are refused, since CSV readers
//! disagree on them and could take a count for part of another cell. No message shows a cell.

use crate::arrays::Items;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;
use std::str;

/// The most bytes in a row, with its end.
const LONGEST: usize = 1 << 17;
/// The most digits of a count.
const DIGITS: usize = 40;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The rows of a file: first the header, then all others, as many at a time as have arrived.
#[pyclass(module = "geomdp._core")]
pub(crate) struct Rows {
    delimiter: u8,
    /// The number of cells of the header.
    width: usize,
    /// The columns of counts, from left to right: the place of each, and its name in messages.
    columns: Vec<(usize, String)>,
    /// The end of each row that is written.
    end: &'static [u8],
    /// The line in which the next row begins.
    line: usize,
    /// What has arrived; it begins with the rows that the last call took.
    data: Vec<u8>,
    taken: usize,
    /// What is not copied of each row taken: its counts and its end.
    replaced: Vec<Range<usize>>,
}

#[pymethods]
impl Rows {
    #[new]
    fn new(delimiter: char) -> PyResult<Self> {
        Ok(Self {
            delimiter: delimiter.try_into().map_err(|_| refused("give ASCII"))?,
            width: 0,
            columns: Vec::new(),
            end: b"\n",
            line: 1,
            data: Vec::new(),
            taken: 0,
            replaced: Vec::new(),
        })
    }

    /// Takes the file's next bytes, or none at its end. Returns the cells of the header once it is
    /// complete.
    fn header(&mut self, chunk: &[u8]) -> PyResult<Option<Vec<String>>> {
        self.data.extend_from_slice(chunk);
        if self.data.starts_with(BOM) {
            self.taken = BOM.len();
        }
        let mut cells = Vec::new();
        let Some(end) = self.take(chunk.is_empty(), &mut cells)? else {
            return Ok(None);
        };
        let first = self.data.iter().position(|&byte| byte == b'\n');
        if first.is_some_and(|at| self.data[..at].ends_with(b"\r")) {
            self.end = b"\r\n";
        }
        self.width = cells.len();
        self.replaced.push(end);
        let names = cells
            .into_iter()
            .map(|cell| str::from_utf8(&self.data[cell]).map(plain));
        let names = names.collect::<Result<_, _>>().map(Some);
        names.map_err(|_| refused("line 1: the header is not UTF-8"))
    }

    /// Sets the columns of counts, from left to right: the place of each, and its name in messages.
    fn select(&mut self, columns: Vec<(usize, String)>) {
        self.columns = columns;
    }

    /// Takes the file's next bytes, or none at its end. Returns the counts, as int64, of the rows
    /// that are complete.
    fn counts<'py>(&mut self, py: Python<'py>, chunk: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        self.data.drain(..self.taken);
        self.data.extend_from_slice(chunk);
        self.taken = 0;
        self.replaced.clear();
        let (mut cells, mut counts) = (Vec::new(), Vec::new());
        while self.taken < self.data.len() {
            let line = self.line;
            let Some(end) = self.take(chunk.is_empty(), &mut cells)? else {
                break;
            };
            if cells.len() != self.width {
                let (found, width) = (cells.len(), self.width);
                let cells = if found == 1 { "cell" } else { "cells" };
                return Err(refused(format!(
                    "line {line}: a row of {found} {cells}, where the header has {width}"
                )));
            }
            for (place, name) in &self.columns {
                let cell = cells[*place].clone();
                let count = integer(&self.data[cell.clone()]).ok_or_else(|| {
                    refused(format!(
                        "line {line}: column {name}: not a decimal integer within int64"
                    ))
                })?;
                counts.extend(count.to_ne_bytes());
                self.replaced.push(cell);
            }
            self.replaced.push(end);
        }
        Ok(PyBytes::new(py, &counts))
    }

    /// Returns the rows that the last call took, with these int64 counts.
    fn text<'py>(
        &self,
        py: Python<'py>,
        counts: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let items = Items::<i64>::of(counts)?;
        let mut counts = vec![0; items.len()];
        items.read(0, &mut counts);
        let mut counts = counts.into_iter();
        let mut text = Vec::with_capacity(2 * self.taken);
        let mut copied = 0;
        // In the header no count is replaced.
        let ends = self.replaced.len().min(self.columns.len() + 1);
        for (place, range) in self.replaced.iter().enumerate() {
            text.extend_from_slice(&self.data[copied..range.start]);
            copied = range.end;
            if (place + 1) % ends == 0 {
                text.extend_from_slice(self.end);
            } else {
                let count = counts.next().ok_or_else(|| refused("too few counts"))?;
                write!(text, "{count}")?;
            }
        }
        Ok(PyBytes::new(py, &text))
    }
}

impl Rows {
    /// Takes the next row, if it is complete. Finds its cells, and returns where it ends.
    fn take(
        &mut self,
        at_end: bool,
        cells: &mut Vec<Range<usize>>,
    ) -> PyResult<Option<Range<usize>>> {
        let (line, start) = (self.line, self.taken);
        // A byte more than a row may have.
        let limit = self.data.len().min(start + LONGEST + 1);
        let data = &self.data[..limit];
        let at_end = at_end && limit == self.data.len();
        let end = find_row(data, start, self.delimiter, at_end, cells).map_err(|Stray| {
            refused(format!(
                "line {line}: not a row by RFC 4180: a stray or an open quote, or CR without LF"
            ))
        })?;
        let next = end.as_ref().map_or(limit, |end| end.end);
        if next - start > LONGEST {
            return Err(refused(format!(
                "line {line}: a row of more than {LONGEST} bytes: is a quote open?"
            )));
        }
        if end.is_some() {
            self.line += data[start..next]
                .iter()
                .filter(|&&byte| byte == b'\n')
                .count();
            self.taken = next;
        }
        Ok(end)
    }
}

/// A column of few distinct cells: these, and the place of each row's as int64.
type Column<'py> = (Vec<String>, Bound<'py, PyBytes>);

/// Returns the header of a whole file, its columns but the last, and the last: int64 counts, which
/// are written as `str` writes integers.
#[pyfunction]
pub(crate) fn columns<'py>(
    py: Python<'py>,
    data: &[u8],
) -> PyResult<(Vec<String>, Vec<Column<'py>>, Bound<'py, PyBytes>)> {
    let data = str::from_utf8(data).map_err(|_| refused("rows are not UTF-8"))?;
    let (mut cells, mut start, mut line) = (Vec::new(), 0, 0);
    let (mut header, mut levels, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    while start < data.len() {
        line += 1;
        start = match find_row(data.as_bytes(), start, b',', true, &mut cells) {
            Ok(Some(end)) => end.end,
            _ => return Err(refused(format!("row {line}: not a row by RFC 4180"))),
        };
        if cells.is_empty() {
            return Err(refused(format!("row {line} is empty")));
        }
        if line == 1 {
            header = cells
                .iter()
                .map(|cell| plain(&data[cell.clone()]))
                .collect();
            levels.resize_with(header.len() - 1, Levels::default);
            continue;
        }
        if cells.len() != header.len() {
            return Err(refused(format!("row {line} has another number of cells")));
        }
        for (cell, column) in cells.iter().zip(&mut levels) {
            column.push(&data[cell.clone()]);
        }
        let text = cells.last().map_or("", |cell| &data[cell.clone()]);
        let count = text.parse::<i64>().ok();
        let count = count.filter(|count| count.to_string() == text);
        let count =
            count.ok_or_else(|| refused(format!("row {line}: no integer such as -7 or 40")));
        counts.extend(count?.to_ne_bytes());
    }
    let levels = levels.into_iter().map(|column| {
        let items = column.items.into_iter().map(plain).collect();
        (items, PyBytes::new(py, &column.places))
    });
    Ok((header, levels.collect(), PyBytes::new(py, &counts)))
}

#[derive(Default)]
struct Levels<'a> {
    items: Vec<&'a str>,
    known: HashMap<&'a str, usize>,
    places: Vec<u8>,
}

impl<'a> Levels<'a> {
    fn push(&mut self, cell: &'a str) {
        let place = *self.known.entry(cell).or_insert(self.items.len());
        if place == self.items.len() {
            self.items.push(cell);
        }
        self.places.extend((place as u64).to_ne_bytes());
    }
}

/// Returns a cell without its quotes.
fn plain(cell: &str) -> String {
    let inner = cell
        .strip_prefix('"')
        .and_then(|cell| cell.strip_suffix('"'));
    inner.map_or_else(|| cell.to_owned(), |cell| cell.replace("\"\"", "\""))
}

struct Stray;

/// Finds the cells of the row that begins at `start`, and returns where it ends: LF, CRLF or the
/// end of the file. Returns `None` if its end is not there yet.
fn find_row(
    data: &[u8],
    start: usize,
    delimiter: u8,
    at_end: bool,
    cells: &mut Vec<Range<usize>>,
) -> Result<Option<Range<usize>>, Stray> {
    cells.clear();
    let mut at = start;
    loop {
        let cell = at;
        // A quote after the closing one continues the cell.
        while data.get(at) == Some(&b'"') {
            match data[at + 1..].iter().position(|&byte| byte == b'"') {
                Some(len) => at += len + 2,
                None if at_end => return Err(Stray),
                None => return Ok(None),
            }
        }
        if at == cell {
            let ends = |&byte: &u8| byte == delimiter || matches!(byte, b'"' | b'\r' | b'\n');
            at = data[at..]
                .iter()
                .position(ends)
                .map_or(data.len(), |len| at + len);
        }
        cells.push(cell..at);
        let end = match &data[at..] {
            [byte, ..] if *byte == delimiter => {
                at += 1;
                continue;
            }
            [b'\n', ..] => at..at + 1,
            [b'\r', b'\n', ..] => at..at + 2,
            [] if at_end => at..at,
            [] | [b'\r'] if !at_end => return Ok(None),
            _ => return Err(Stray),
        };
        // A blank line has no cells.
        if at == start {
            cells.clear();
        }
        return Ok(Some(end));
    }
}

/// Reads a decimal integer: an optional sign and up to 40 digits, with optional blanks around them.
fn integer(cell: &[u8]) -> Option<i64> {
    let text = str::from_utf8(cell).ok()?;
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let text = inner.unwrap_or(text).trim_matches([' ', '\t']);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    (digits.len() <= DIGITS).then(|| text.parse().ok())?
}

fn refused(why: impl Into<String>) -> PyErr {
    PyValueError::new_err(why.into())
}
