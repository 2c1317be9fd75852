//! The block coders on rows of numpy arrays, which they read and write in place.

use corridor_codec::{self as codec, Field, Outcome};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2};
use numpy::{PyReadwriteArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::error::{refused, value};

pub(crate) type Rows<'py> = PyReadonlyArray2<'py, u8>;
pub(crate) type RowsMut<'py> = PyReadwriteArray2<'py, u8>;
pub(crate) type Flags<'py> = PyReadwriteArray1<'py, bool>;

pub(crate) fn field(order: u32) -> PyResult<Field> {
    let fields = [Field::Gf2, Field::Gf16, Field::Gf256];
    fields
        .into_iter()
        .find(|field| field.order() == order)
        .ok_or_else(|| value("field", order, "2, 16 or 256"))
}

/// Bytes of an array with contiguous rows.
pub(crate) fn bytes<'a>(name: &str, rows: &'a Rows<'_>) -> PyResult<&'a [u8]> {
    rows.as_slice().map_err(|_| value(name, "an array with gaps", "a C-contiguous one"))
}

pub(crate) fn bytes_mut<'a>(name: &str, rows: &'a mut RowsMut<'_>) -> PyResult<&'a mut [u8]> {
    rows.as_slice_mut().map_err(|_| value(name, "an array with gaps", "a C-contiguous one"))
}

/// Length of an array's rows, at least one.
pub(crate) fn width(name: &str, shape: &[usize]) -> PyResult<usize> {
    match shape {
        [_, width] if *width > 0 => Ok(*width),
        _ => Err(value(name, format!("an array of shape {shape:?}"), "rows of one byte or more")),
    }
}

pub(crate) fn same_rows(name: &str, given: usize, expected: usize) -> PyResult<()> {
    if given == expected {
        return Ok(());
    }
    Err(value(name, format!("{given} rows"), format!("{expected}, one for each of the others")))
}

/// State of a coder, to give to another: coding vectors, and payloads, one per row.
pub(crate) type Held<'py> = (Bound<'py, PyArray2<u8>>, Bound<'py, PyArray2<u8>>);
/// Position of a keystream: its seed, and the number of its next word.
pub(crate) type Keystream<'py> = (Bound<'py, PyBytes>, u128);

/// Arrays of `rows` rows of these widths; `each` calls its argument with every vector and payload.
pub(crate) fn held<'py>(
    py: Python<'py>,
    rows: usize,
    (vector_bytes, symbol_bytes): (usize, usize),
    each: impl FnOnce(&mut dyn FnMut(&[u8], &[u8])),
) -> PyResult<Held<'py>> {
    // Even chunks of an empty array need a nonzero length.
    let (vectors, payloads) = (
        PyArray2::zeros(py, [rows, vector_bytes.max(1)], false),
        PyArray2::zeros(py, [rows, symbol_bytes], false),
    );
    let (mut to_vectors, mut to_payloads) = (vectors.readwrite(), payloads.readwrite());
    let mut places = bytes_mut("vectors", &mut to_vectors)?
        .chunks_exact_mut(vector_bytes.max(1))
        .zip(bytes_mut("payloads", &mut to_payloads)?.chunks_exact_mut(symbol_bytes));
    each(&mut |vector, payload| {
        if let Some((to_vector, to_payload)) = places.next() {
            to_vector.copy_from_slice(vector);
            to_payload[..payload.len()].copy_from_slice(payload);
        }
    });
    drop((to_vectors, to_payloads));
    Ok((vectors, payloads))
}

pub(crate) fn keystream<'py>(py: Python<'py>, rng: &ChaCha8Rng) -> Keystream<'py> {
    (PyBytes::new(py, &rng.get_seed()), rng.get_word_pos())
}

pub(crate) fn keystream_at(seed: [u8; 32], position: u128) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::from_seed(seed);
    rng.set_word_pos(position);
    rng
}

/// Bytes of a coding vector over `count` symbols.
#[pyfunction]
#[pyo3(name = "vector_bytes")]
pub fn vector_bytes(field_order: u32, count: usize) -> PyResult<usize> {
    Ok(field(field_order)?.vector_len_bytes(count))
}

/// Coding vectors drawn from the keystream of a seed, all nonzero.
#[pyfunction]
pub fn draw_vectors<'py>(
    py: Python<'py>,
    field_order: u32,
    count: usize,
    rows: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    let field = field(field_order)?;
    if !(1..=codec::MAX_BLOCK_SIZE).contains(&count) {
        return Err(value("count", count, format!("1 to {}", codec::MAX_BLOCK_SIZE)));
    }
    let width = field.vector_len_bytes(count);
    let vectors = PyArray2::zeros(py, [rows, width], false);
    let mut written = vectors.readwrite();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for vector in bytes_mut("vectors", &mut written)?.chunks_exact_mut(width) {
        field.draw_vector(count, &mut rng, vector).map_err(refused)?;
    }
    drop(written);
    Ok(vectors)
}

/// Encoder of one block.
#[pyclass]
pub struct BlockEncoder(codec::BlockEncoder);

#[pymethods]
impl BlockEncoder {
    #[new]
    fn new(field_order: u32, block_size: usize, symbol_bytes: usize) -> PyResult<Self> {
        let inner = codec::BlockEncoder::new(field(field_order)?, block_size, symbol_bytes);
        inner.map(BlockEncoder).map_err(refused)
    }

    /// Appends source symbols.
    fn push(&mut self, symbols: Rows<'_>) -> PyResult<()> {
        let width = width("symbols", symbols.shape())?;
        for symbol in bytes("symbols", &symbols)?.chunks_exact(width) {
            self.0.push(symbol).map_err(refused)?;
        }
        Ok(())
    }

    /// Writes a coded symbol to each row of `out`.
    fn encode(&self, vectors: Rows<'_>, count: usize, mut out: RowsMut<'_>) -> PyResult<()> {
        let width = width("out", out.shape())?;
        same_rows("out", out.shape()[0], vectors.shape()[0])?;
        let mut rows: Vec<&mut [u8]> =
            bytes_mut("out", &mut out)?.chunks_exact_mut(width).collect();
        let vectors = bytes("vectors", &vectors)?;
        let len = self.0.encode_batch(vectors, count, &mut rows).map_err(refused)?;
        rows.iter_mut().for_each(|row| row[len..].fill(0));
        Ok(())
    }

    /// Source symbol `index`, if there is one.
    fn symbol<'py>(&self, py: Python<'py>, index: usize) -> Option<Bound<'py, PyBytes>> {
        self.0.symbol(index).map(|symbol| PyBytes::new(py, symbol))
    }

    #[getter]
    fn count(&self) -> usize {
        self.0.count()
    }
}

/// Recoder of one block.
#[pyclass]
pub struct Recoder {
    inner: codec::Recoder,
    rng: ChaCha8Rng,
}

#[pymethods]
impl Recoder {
    #[new]
    fn new(field_order: u32, block_size: usize, symbol_bytes: usize, seed: u64) -> PyResult<Self> {
        let inner = codec::Recoder::new(field(field_order)?, block_size, symbol_bytes);
        let rng = ChaCha8Rng::seed_from_u64(seed);
        inner.map(|inner| Recoder { inner, rng }).map_err(refused)
    }

    /// Adds coded symbols, and reports which of them were innovative.
    fn add_coded(
        &mut self,
        vectors: Rows<'_>,
        count: usize,
        payloads: Rows<'_>,
        innovative: Flags<'_>,
    ) -> PyResult<()> {
        let add = |vector: &[u8], payload: &[u8]| self.inner.add_coded(vector, count, payload);
        each_coded(&vectors, &payloads, innovative, add)
    }

    /// Writes a coding vector and a payload to each row.
    fn recode(&mut self, mut vectors: RowsMut<'_>, mut payloads: RowsMut<'_>) -> PyResult<()> {
        let width = width("payloads", payloads.shape())?;
        same_rows("payloads", payloads.shape()[0], vectors.shape()[0])?;
        let vector_bytes = self.inner.field().vector_len_bytes(self.inner.known_count());
        if vectors.shape()[1] != vector_bytes {
            let given = format!("rows of {} bytes", vectors.shape()[1]);
            return Err(value("vectors", given, format!("rows of {vector_bytes}")));
        }
        let mut rows: Vec<&mut [u8]> =
            bytes_mut("payloads", &mut payloads)?.chunks_exact_mut(width).collect();
        let vectors = bytes_mut("vectors", &mut vectors)?;
        let recoded = self.inner.recode_batch(&mut self.rng, vectors, &mut rows);
        let recoded = recoded.ok_or_else(|| value("rank", self.inner.rank(), "1 or more"))?;
        rows.iter_mut().for_each(|row| row[recoded.len..].fill(0));
        Ok(())
    }

    /// The symbols held, in order of arrival; vectors cover `known_count` symbols.
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Held<'py>> {
        let vector_bytes = self.inner.field().vector_len_bytes(self.inner.known_count());
        let widths = (vector_bytes, self.inner.symbol_size_max());
        held(py, self.inner.rank(), widths, |see| self.inner.each_held(see))
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
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    #[getter]
    fn known_count(&self) -> usize {
        self.inner.known_count()
    }
}

/// Progressive decoder of one block.
#[pyclass]
pub struct BlockDecoder(codec::BlockDecoder);

#[pymethods]
impl BlockDecoder {
    #[new]
    fn new(field_order: u32, block_size: usize, symbol_bytes: usize) -> PyResult<Self> {
        let inner = codec::BlockDecoder::new(field(field_order)?, block_size, symbol_bytes);
        inner.map(BlockDecoder).map_err(refused)
    }

    /// Adds source symbols with these indices, and reports which of them were innovative.
    fn add_source(
        &mut self,
        indices: PyReadonlyArray1<'_, u64>,
        symbols: Rows<'_>,
        mut innovative: Flags<'_>,
    ) -> PyResult<()> {
        let width = width("symbols", symbols.shape())?;
        same_rows("indices", indices.len(), symbols.shape()[0])?;
        same_rows("innovative", innovative.len(), symbols.shape()[0])?;
        let symbols = bytes("symbols", &symbols)?.chunks_exact(width);
        let each = indices.as_array().into_iter().zip(symbols).zip(innovative.as_array_mut());
        for ((&index, symbol), innovative) in each {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            *innovative = self.0.add_source(index, symbol).map_err(refused)? == Outcome::Innovative;
        }
        Ok(())
    }

    /// Adds coded symbols, and reports which of them were innovative.
    fn add_coded(
        &mut self,
        vectors: Rows<'_>,
        count: usize,
        payloads: Rows<'_>,
        innovative: Flags<'_>,
    ) -> PyResult<()> {
        let add = |vector: &[u8], payload: &[u8]| self.0.add_coded(vector, count, payload);
        each_coded(&vectors, &payloads, innovative, add)
    }

    /// Writes the decoded symbols, each to its row, padded with zeros, and whether each is decoded.
    fn symbols(&self, mut out: RowsMut<'_>, mut decoded: Flags<'_>) -> PyResult<()> {
        let width = width("out", out.shape())?;
        same_rows("out", out.shape()[0], self.0.block_size())?;
        same_rows("decoded", decoded.len(), self.0.block_size())?;
        let rows = bytes_mut("out", &mut out)?.chunks_exact_mut(width);
        for ((index, row), decoded) in rows.enumerate().zip(decoded.as_array_mut()) {
            let symbol = self.0.symbol(index);
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

    /// Source symbol `index`, if it is decoded; trailing zeros may be missing.
    fn symbol<'py>(&self, py: Python<'py>, index: usize) -> Option<Bound<'py, PyBytes>> {
        self.0.symbol(index).map(|symbol| PyBytes::new(py, symbol))
    }

    /// The symbols held; vectors cover `known_count` symbols.
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Held<'py>> {
        let vector_bytes = self.0.field().vector_len_bytes(self.0.known_count());
        let widths = (vector_bytes, self.0.symbol_size_max());
        held(py, self.0.rank(), widths, |see| self.0.each_held(see))
    }

    #[getter]
    fn known_count(&self) -> usize {
        self.0.known_count()
    }

    #[getter]
    fn decoded_count(&self) -> usize {
        self.0.decoded_count()
    }

    #[getter]
    fn rank(&self) -> usize {
        self.0.rank()
    }

    #[getter]
    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }
}

/// Passes every row of two arrays to a coder.
fn each_coded(
    vectors: &Rows<'_>,
    payloads: &Rows<'_>,
    mut innovative: Flags<'_>,
    mut add: impl FnMut(&[u8], &[u8]) -> Result<Outcome, codec::CodecError>,
) -> PyResult<()> {
    let vector_width = width("vectors", vectors.shape())?;
    let payload_width = width("payloads", payloads.shape())?;
    same_rows("payloads", payloads.shape()[0], vectors.shape()[0])?;
    same_rows("innovative", innovative.len(), vectors.shape()[0])?;
    let vectors = bytes("vectors", vectors)?.chunks_exact(vector_width);
    let payloads = bytes("payloads", payloads)?.chunks_exact(payload_width);
    for ((vector, payload), innovative) in vectors.zip(payloads).zip(innovative.as_array_mut()) {
        *innovative = add(vector, payload).map_err(refused)? == Outcome::Innovative;
    }
    Ok(())
}
