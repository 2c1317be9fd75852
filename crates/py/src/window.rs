//! The sliding-window coder on rows of numpy arrays, which it reads and writes in place.

use corridor_codec::{self as codec, Coefficients, Density, Field, WindowOutcome};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadwriteArray1};
use numpy::{PyReadwriteArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::codec::{Flags, Held, Keystream, Rows, RowsMut};
use crate::codec::{bytes, bytes_mut, field, held, keystream, keystream_at, same_rows, width};
use crate::error::{refused, value};

type Ids<'py> = PyReadonlyArray1<'py, u64>;
type Outcomes<'py> = PyReadwriteArray1<'py, u8>;
type Vectors<'py> = Bound<'py, PyArray2<u8>>;

/// Numbers of the outcomes, as in `WindowOutcome` in Python.
fn number(outcome: WindowOutcome) -> u8 {
    match outcome {
        WindowOutcome::Dependent => 0,
        WindowOutcome::Innovative => 1,
        WindowOutcome::Stale => 2,
        WindowOutcome::Ahead => 3,
    }
}

/// Rows of coding vectors over `count` symbols, each written by `expand`.
fn expanded<'py>(
    py: Python<'py>,
    field: Field,
    count: usize,
    rows: usize,
    mut expand: impl FnMut(usize, &mut [u8]) -> Result<(), codec::CodecError>,
) -> PyResult<Vectors<'py>> {
    if !(1..=codec::MAX_WINDOW_SIZE).contains(&count) {
        return Err(value("count", count, format!("1 to {}", codec::MAX_WINDOW_SIZE)));
    }
    let width = field.vector_len_bytes(count);
    let vectors = PyArray2::zeros(py, [rows, width], false);
    let mut written: PyReadwriteArray2<'_, u8> = vectors.readwrite();
    for (row, vector) in bytes_mut("vectors", &mut written)?.chunks_exact_mut(width).enumerate() {
        expand(row, vector).map_err(refused)?;
    }
    drop(written);
    Ok(vectors)
}

/// Expands seeds into coding vectors.
#[pyfunction]
pub fn expand_seeds<'py>(
    py: Python<'py>,
    field_order: u32,
    count: usize,
    seeds: PyReadonlyArray1<'py, u32>,
) -> PyResult<Vectors<'py>> {
    let (field, seeds) = (field(field_order)?, seeds.as_array());
    expanded(py, field, count, seeds.len(), |row, out| field.expand_seed(seeds[row], count, out))
}

/// Expands repair keys of RFC 8681 into coding vectors.
#[pyfunction]
pub fn expand_repair_keys<'py>(
    py: Python<'py>,
    field_order: u32,
    count: usize,
    keys: PyReadonlyArray1<'py, u16>,
    density: u8,
) -> PyResult<Vectors<'py>> {
    let (field, keys) = (field(field_order)?, keys.as_array());
    let density = Density::new(density).map_err(refused)?;
    let expand = |row, out: &mut [u8]| field.expand_repair_key(keys[row], density, count, out);
    expanded(py, field, count, keys.len(), expand)
}

/// Encoder of a stream of source symbols.
#[pyclass]
pub struct WindowEncoder(codec::WindowEncoder);

#[pymethods]
impl WindowEncoder {
    #[new]
    fn new(
        field_order: u32,
        window_size: usize,
        symbol_bytes: usize,
        first: u64,
    ) -> PyResult<Self> {
        let inner = codec::WindowEncoder::new(field(field_order)?, window_size, symbol_bytes);
        let mut inner = inner.map_err(refused)?;
        inner.reset(first);
        Ok(Self(inner))
    }

    /// Appends source symbols: all of them, or none.
    fn push(&mut self, symbols: Rows<'_>) -> PyResult<()> {
        let width = width("symbols", symbols.shape())?;
        let room = self.0.window_size() - self.0.count();
        if symbols.shape()[0] > room {
            let given = format!("{} rows", symbols.shape()[0]);
            return Err(value("symbols", given, format!("at most {room}, the window's room")));
        }
        for symbol in bytes("symbols", &symbols)?.chunks_exact(width) {
            self.0.push(symbol).map_err(refused)?;
        }
        Ok(())
    }

    /// Writes a coded symbol to each row of `out`.
    fn encode(
        &self,
        first: u64,
        count: usize,
        vectors: Rows<'_>,
        mut out: RowsMut<'_>,
    ) -> PyResult<()> {
        let (width, vector_width) = (width("out", out.shape())?, vectors.shape()[1].max(1));
        same_rows("out", out.shape()[0], vectors.shape()[0])?;
        let mut rows: Vec<&mut [u8]> =
            bytes_mut("out", &mut out)?.chunks_exact_mut(width).collect();
        let vectors = bytes("vectors", &vectors)?.chunks_exact(vector_width);
        let given: Vec<_> = vectors.map(Coefficients::Vector).collect();
        let len = self.0.encode_batch(first, count, &given, &mut rows).map_err(refused)?;
        rows.iter_mut().for_each(|row| row[len..].fill(0));
        Ok(())
    }

    fn advance_to(&mut self, to: u64) {
        self.0.advance_to(to);
    }

    /// Source symbol with that id, if the window contains it.
    fn symbol<'py>(&self, py: Python<'py>, symbol_id: u64) -> Option<Bound<'py, PyBytes>> {
        self.0.symbol(symbol_id).map(|symbol| PyBytes::new(py, symbol))
    }

    #[getter]
    fn base(&self) -> u64 {
        self.0.base()
    }

    #[getter]
    fn end(&self) -> u64 {
        self.0.end()
    }
}

/// Progressive decoder, and recoder, of a stream of source symbols.
#[pyclass]
pub struct WindowDecoder {
    inner: codec::WindowDecoder,
    rng: ChaCha8Rng,
}

#[pymethods]
impl WindowDecoder {
    #[new]
    fn new(
        field_order: u32,
        window_size: usize,
        symbol_bytes: usize,
        first: u64,
        seed: u64,
    ) -> PyResult<Self> {
        let inner = codec::WindowDecoder::new(field(field_order)?, window_size, symbol_bytes);
        let mut inner = inner.map_err(refused)?;
        inner.reset(first);
        Ok(Self { inner, rng: ChaCha8Rng::seed_from_u64(seed) })
    }

    /// Adds source symbols with these ids, and reports their outcomes.
    fn add_source(
        &mut self,
        ids: Ids<'_>,
        symbols: Rows<'_>,
        mut outcomes: Outcomes<'_>,
    ) -> PyResult<()> {
        let width = width("symbols", symbols.shape())?;
        same_rows("ids", ids.len(), symbols.shape()[0])?;
        same_rows("outcomes", outcomes.len(), symbols.shape()[0])?;
        let symbols = bytes("symbols", &symbols)?.chunks_exact(width);
        let each = ids.as_array().into_iter().zip(symbols).zip(outcomes.as_array_mut());
        for ((&id, symbol), outcome) in each {
            *outcome = number(self.inner.add_source(id, symbol).map_err(refused)?);
        }
        Ok(())
    }

    /// Adds coded symbols over one run, and reports their outcomes.
    fn add_coded(
        &mut self,
        first: u64,
        count: usize,
        vectors: Rows<'_>,
        payloads: Rows<'_>,
        mut outcomes: Outcomes<'_>,
    ) -> PyResult<()> {
        let vector_width = width("vectors", vectors.shape())?;
        let payload_width = width("payloads", payloads.shape())?;
        same_rows("payloads", payloads.shape()[0], vectors.shape()[0])?;
        same_rows("outcomes", outcomes.len(), vectors.shape()[0])?;
        let vectors = bytes("vectors", &vectors)?.chunks_exact(vector_width);
        let payloads = bytes("payloads", &payloads)?.chunks_exact(payload_width);
        for ((vector, payload), outcome) in vectors.zip(payloads).zip(outcomes.as_array_mut()) {
            let given = Coefficients::Vector(vector);
            let added = self.inner.add_coded(first, count, given, payload);
            *outcome = number(added.map_err(refused)?);
        }
        Ok(())
    }

    /// Writes a coding vector over the run and a payload to each row.
    fn recode(
        &mut self,
        first: u64,
        count: usize,
        mut vectors: RowsMut<'_>,
        mut payloads: RowsMut<'_>,
    ) -> PyResult<()> {
        let width = width("payloads", payloads.shape())?;
        same_rows("payloads", payloads.shape()[0], vectors.shape()[0])?;
        let vector_bytes = self.inner.field().vector_len_bytes(count);
        if vectors.shape()[1] != vector_bytes {
            let given = format!("rows of {} bytes", vectors.shape()[1]);
            return Err(value("vectors", given, format!("rows of {vector_bytes}")));
        }
        let mut rows: Vec<&mut [u8]> =
            bytes_mut("payloads", &mut payloads)?.chunks_exact_mut(width).collect();
        let vectors = bytes_mut("vectors", &mut vectors)?;
        let recoded = self.inner.recode_batch(first, count, &mut self.rng, vectors, &mut rows);
        let recoded = recoded.map_err(refused)?;
        let nothing = || value("run", "nothing to combine", "a symbol that is about it only");
        let recoded = recoded.ok_or_else(nothing)?;
        rows.iter_mut().for_each(|row| row[recoded.len..].fill(0));
        Ok(())
    }

    /// Writes the decoded symbols of a run, each to its row, padded with zeros, and whether each is
    /// decoded.
    fn symbols(&self, first: u64, mut out: RowsMut<'_>, mut decoded: Flags<'_>) -> PyResult<()> {
        let width = width("out", out.shape())?;
        same_rows("decoded", decoded.len(), out.shape()[0])?;
        let rows = bytes_mut("out", &mut out)?.chunks_exact_mut(width);
        for ((id, row), decoded) in (first..=u64::MAX).zip(rows).zip(decoded.as_array_mut()) {
            let symbol = self.inner.symbol(id);
            *decoded = symbol.is_some();
            let symbol = symbol.unwrap_or_default();
            let Some((filled, rest)) = row.split_at_mut_checked(symbol.len()) else {
                return Err(value("out", format!("rows of {width} bytes"), symbol.len()));
            };
            filled.copy_from_slice(symbol);
            rest.fill(0);
        }
        Ok(())
    }

    /// Reports which symbols of a run are decoded.
    fn decoded(&self, first: u64, mut decoded: Flags<'_>) {
        for (id, decoded) in (first..=u64::MAX).zip(decoded.as_array_mut()) {
            *decoded = self.inner.is_decoded(id);
        }
    }

    /// Ids decoded since the last call, in ascending order.
    fn poll_decoded<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, core::iter::from_fn(|| self.inner.poll_decoded()))
    }

    /// The same, without marking them as reported.
    fn unpolled<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        let mut copy = self.inner.clone();
        PyArray1::from_iter(py, core::iter::from_fn(|| copy.poll_decoded()))
    }

    fn advance_to(&mut self, to: u64) -> u64 {
        self.inner.advance_to(to)
    }

    /// Source symbol with that id, if it is decoded and in the window; trailing zeros may be
    /// missing.
    fn symbol<'py>(&self, py: Python<'py>, symbol_id: u64) -> Option<Bound<'py, PyBytes>> {
        self.inner.symbol(symbol_id).map(|symbol| PyBytes::new(py, symbol))
    }

    /// Unresolved coded symbols; vectors cover the window.
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Held<'py>> {
        let count = (self.inner.end() - self.inner.base()) as usize;
        let rows = self.inner.rank() - self.inner.decoded_count();
        let widths = (self.inner.field().vector_len_bytes(count), self.inner.symbol_size_max());
        held(py, rows, widths, |see| self.inner.each_coded(see))
    }

    /// Position of the keystream for recoding.
    fn keystream<'py>(&self, py: Python<'py>) -> Keystream<'py> {
        keystream(py, &self.rng)
    }

    fn seek_keystream(&mut self, seed: [u8; 32], position: u128) {
        self.rng = keystream_at(seed, position);
    }

    /// Restarts recoding with another keystream.
    fn reseed(&mut self, seed: u64) {
        self.rng = ChaCha8Rng::seed_from_u64(seed);
    }

    #[getter]
    fn base(&self) -> u64 {
        self.inner.base()
    }

    #[getter]
    fn end(&self) -> u64 {
        self.inner.end()
    }

    #[getter]
    fn in_order_end(&self) -> u64 {
        self.inner.in_order_end()
    }

    #[getter]
    fn seen_end(&self) -> u64 {
        self.inner.seen_end()
    }

    #[getter]
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    #[getter]
    fn deficit(&self) -> usize {
        self.inner.deficit()
    }
}
