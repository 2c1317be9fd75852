/* C interface of corridor-codec: random linear network coding of blocks and of a sliding window.
 *
 * Generated from crates/capi; do not edit. To renew it:
 *   CORRIDOR_BLESS=1 cargo test -p corridor-capi --test it header
 *
 * A handle comes from the _new function of its type and is valid until passed to _free; one
 * thread uses it at a time. A pointer with a length points to that many bytes that overlap no
 * other argument, and may be null if the length is zero. After an error nothing has changed.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef CORRIDOR_CODEC_H
#define CORRIDOR_CODEC_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Maximum number of symbols per call.
#define CORRIDOR_BATCH_MAX 64

// Negative for errors, otherwise the outcome.
enum CorridorStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  CORRIDOR_STATUS_OK = 0,
  // The symbol was innovative: it raised the rank by one.
  CORRIDOR_STATUS_INNOVATIVE = 1,
  // The symbol is linearly dependent on those already held; it was dropped.
  CORRIDOR_STATUS_DEPENDENT = 2,
  // The symbol covers one before the window; it was dropped.
  CORRIDOR_STATUS_STALE = 3,
  // The symbol would make the window too long; it was dropped: advance first.
  CORRIDOR_STATUS_AHEAD = 4,
  // There is no such thing: no symbol decoded, nothing to recode.
  CORRIDOR_STATUS_NOTHING = 5,
  // A pointer is null where that is not allowed.
  CORRIDOR_STATUS_NULL_POINTER = -1,
  // A length exceeds that of any object.
  CORRIDOR_STATUS_LENGTH_TOO_LONG = -2,
  // No field has this order: it must be 2, 16 or 256.
  CORRIDOR_STATUS_UNKNOWN_FIELD = -3,
  // The block size is 0 or more than 1024.
  CORRIDOR_STATUS_BLOCK_SIZE = -4,
  // The window size is 0 or more than 1024.
  CORRIDOR_STATUS_WINDOW_SIZE = -5,
  // The maximum symbol size is 0 or more than 65535.
  CORRIDOR_STATUS_SYMBOL_SIZE_MAX = -6,
  // A symbol or payload is empty, or longer than the coder's maximum.
  CORRIDOR_STATUS_SYMBOL_LENGTH = -7,
  // The block has all its symbols.
  CORRIDOR_STATUS_BLOCK_FULL = -8,
  // The window is full: advance first.
  CORRIDOR_STATUS_WINDOW_FULL = -9,
  // The block has no such symbol.
  CORRIDOR_STATUS_INDEX_OUT_OF_RANGE = -10,
  // A coding vector covers no symbols, or more than there are.
  CORRIDOR_STATUS_COUNT_OUT_OF_RANGE = -11,
  // The length of a coding vector does not match its number of symbols.
  CORRIDOR_STATUS_VECTOR_LENGTH = -12,
  // The result does not fit the buffer.
  CORRIDOR_STATUS_BUFFER_TOO_SHORT = -13,
  // The symbols are not in the window.
  CORRIDOR_STATUS_OUTSIDE_WINDOW = -14,
  // Symbol ids must be below 2^64 - 1.
  CORRIDOR_STATUS_ID_RANGE = -15,
  // The density threshold is above 15.
  CORRIDOR_STATUS_DENSITY_THRESHOLD = -16,
  // RFC 8681 defines repair keys over the fields of order 2 and 256 only.
  CORRIDOR_STATUS_REPAIR_KEY_FIELD = -17,
  // An error without a number in this version of the interface.
  CORRIDOR_STATUS_OTHER_ERROR = -98,
  // A bug in this library. The handle can only be freed.
  CORRIDOR_STATUS_PANIC = -99,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum CorridorStatus CorridorStatus;
#else
typedef int32_t CorridorStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Progressive decoder of one block.
typedef struct CorridorBlockDecoder CorridorBlockDecoder;

// Encoder of one block: holds its source symbols, and combines them.
typedef struct CorridorBlockEncoder CorridorBlockEncoder;

// Recoder of one block, for a helper or relay that does not decode it.
typedef struct CorridorBlockRecoder CorridorBlockRecoder;

// Progressive decoder, and recoder, of a stream of source symbols.
typedef struct CorridorWindowDecoder CorridorWindowDecoder;

// Encoder of a stream: holds the source symbols in the window, usually those not acknowledged yet,
// and combines them.
typedef struct CorridorWindowEncoder CorridorWindowEncoder;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// A description of a status, in English, valid forever; never null.
const char *corridor_status_text(int32_t status);

// Version of the binary interface (ABI). It changes when programs must be recompiled.
uint32_t corridor_abi_version(void);

// Length in bytes of a coding vector over `count` symbols; 0 for an invalid field order.
//
// Coefficients are packed starting with the least significant bit of the first byte: one bit each
// for the field of order 2, four for 16 (polynomial 0x13), eight for 256 (0x11D).
size_t corridor_vector_len(uint32_t field_order, size_t count);

// Expands a seed into a coding vector over `count` symbols. Equal seeds give equal vectors on
// every machine.
CorridorStatus corridor_expand_seed(uint32_t field_order,
                                    uint32_t seed,
                                    size_t count,
                                    uint8_t *out,
                                    size_t out_len);

// Expands a repair key of RFC 8681 into a coding vector over `count` symbols, over the field of
// order 2 or 256; `density_threshold` is in 0..=15.
CorridorStatus corridor_expand_repair_key(uint32_t field_order,
                                          uint16_t repair_key,
                                          uint8_t density_threshold,
                                          size_t count,
                                          uint8_t *out,
                                          size_t out_len);

// Makes `symbol_count` coded symbols of the first `count` symbols: writes the one with the i-th
// coding vector of `vectors`, which are concatenated, to `out + i * stride`. All symbols of a
// batch are padded with zeros to the longest of them, `*len_out` bytes; a stride of
// `symbol_size_max` bytes always suffices. `symbol_count` is at most `CORRIDOR_BATCH_MAX`, else
// `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
CorridorStatus corridor_block_encoder_encode_batch(const struct CorridorBlockEncoder *handle,
                                                   const uint8_t *vectors,
                                                   size_t vectors_len,
                                                   size_t count,
                                                   size_t symbol_count,
                                                   uint8_t *out,
                                                   size_t stride,
                                                   size_t *len_out);

// Draws `symbol_count` combinations of all symbols held: writes their coding vectors over the
// first `*count_out` symbols one after the other, and their payloads, all `*len_out` bytes long,
// to `payloads_out + i * stride`. `CORRIDOR_STATUS_NOTHING` if nothing is held, or a buffer is too
// short: vector lengths of the block size, and a stride of `symbol_size_max`, always suffice.
// Equal seeds draw the same combinations: use a new seed for each call. `symbol_count` is at most
// `CORRIDOR_BATCH_MAX`, else `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
CorridorStatus corridor_block_recoder_recode_batch(const struct CorridorBlockRecoder *handle,
                                                   uint64_t seed,
                                                   uint8_t *vectors_out,
                                                   size_t vectors_len,
                                                   size_t *count_out,
                                                   size_t symbol_count,
                                                   uint8_t *payloads_out,
                                                   size_t stride,
                                                   size_t *len_out);

// Draws combinations of all symbols held, like `corridor_block_recoder_recode_batch`.
CorridorStatus corridor_block_decoder_recode_batch(const struct CorridorBlockDecoder *handle,
                                                   uint64_t seed,
                                                   uint8_t *vectors_out,
                                                   size_t vectors_len,
                                                   size_t *count_out,
                                                   size_t symbol_count,
                                                   uint8_t *payloads_out,
                                                   size_t stride,
                                                   size_t *len_out);

// Makes `symbol_count` coded symbols of the `count` symbols from id `first` on: writes the one
// with the i-th coding vector of `vectors`, which are concatenated, to `out + i * stride`. All
// symbols of a batch are padded with zeros to the longest of them, `*len_out` bytes; a stride of
// `symbol_size_max` bytes always suffices. `symbol_count` is at most `CORRIDOR_BATCH_MAX`, else
// `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
CorridorStatus corridor_window_encoder_encode_batch(const struct CorridorWindowEncoder *handle,
                                                    uint64_t first,
                                                    size_t count,
                                                    const uint8_t *vectors,
                                                    size_t vectors_len,
                                                    size_t symbol_count,
                                                    uint8_t *out,
                                                    size_t stride,
                                                    size_t *len_out);

// The same with the vectors that the seeds `seed`, `seed + 1` and so on expand to; after the
// highest seed comes 0.
CorridorStatus corridor_window_encoder_encode_batch_seeds(const struct CorridorWindowEncoder *handle,
                                                          uint64_t first,
                                                          size_t count,
                                                          uint32_t seed,
                                                          size_t symbol_count,
                                                          uint8_t *out,
                                                          size_t stride,
                                                          size_t *len_out);

// Draws `symbol_count` combinations of the symbols held that only cover the `count` symbols from
// id `first` on: writes their coding vectors over this run one after the other, and their
// payloads, all `*len_out` bytes long, to `payloads_out + i * stride`. `CORRIDOR_STATUS_NOTHING`
// if there is nothing to combine. Equal seeds draw the same combinations: use a new seed for each
// call. `symbol_count` is at most `CORRIDOR_BATCH_MAX`, else `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
CorridorStatus corridor_window_decoder_recode_batch(const struct CorridorWindowDecoder *handle,
                                                    uint64_t first,
                                                    size_t count,
                                                    uint64_t seed,
                                                    uint8_t *vectors_out,
                                                    size_t vectors_len,
                                                    size_t symbol_count,
                                                    uint8_t *payloads_out,
                                                    size_t stride,
                                                    size_t *len_out);

// Makes an encoder of blocks of up to `block_size` symbols of up to `symbol_size_max` bytes, over
// the field of order 2, 16 or 256. Allocates all memory.
CorridorStatus corridor_block_encoder_new(uint32_t field_order,
                                          size_t block_size,
                                          size_t symbol_size_max,
                                          struct CorridorBlockEncoder **out);

// Frees the handle; null is allowed.
void corridor_block_encoder_free(struct CorridorBlockEncoder *handle);

// Appends a source symbol to the block, and writes its index if `index_out` is not null.
CorridorStatus corridor_block_encoder_push(struct CorridorBlockEncoder *handle,
                                           const uint8_t *symbol,
                                           size_t symbol_len,
                                           size_t *index_out);

// Writes the combination of the first `count` symbols with the given coding vector, and its length
// in bytes. A buffer of `symbol_size_max` bytes is always long enough.
CorridorStatus corridor_block_encoder_encode(const struct CorridorBlockEncoder *handle,
                                             const uint8_t *vector,
                                             size_t vector_len,
                                             size_t count,
                                             uint8_t *out,
                                             size_t out_len,
                                             size_t *len_out);

// Number of source symbols in the block so far; 0 for null.
size_t corridor_block_encoder_count(const struct CorridorBlockEncoder *handle);

// Clears the block for the next one; keeps the memory.
CorridorStatus corridor_block_encoder_clear(struct CorridorBlockEncoder *handle);

// Makes a decoder of blocks of `block_size` symbols of up to `symbol_size_max` bytes, over the
// field of order 2, 16 or 256. Allocates all memory.
CorridorStatus corridor_block_decoder_new(uint32_t field_order,
                                          size_t block_size,
                                          size_t symbol_size_max,
                                          struct CorridorBlockDecoder **out);

// Frees the handle; null is allowed.
void corridor_block_decoder_free(struct CorridorBlockDecoder *handle);

// Adds source symbol `index`: `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
CorridorStatus corridor_block_decoder_add_source(struct CorridorBlockDecoder *handle,
                                                 size_t index,
                                                 const uint8_t *symbol,
                                                 size_t symbol_len);

// Adds a coded symbol, the combination of the first `count` symbols with the given coding vector:
// `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
CorridorStatus corridor_block_decoder_add_coded(struct CorridorBlockDecoder *handle,
                                                const uint8_t *vector,
                                                size_t vector_len,
                                                size_t count,
                                                const uint8_t *payload,
                                                size_t payload_len);

// Writes a random combination of all symbols held: its coding vector over the first `*count_out`
// symbols, and its payload of `*len_out` bytes. `CORRIDOR_STATUS_NOTHING` if nothing is held, or a
// buffer is too short: the vector length of the block size, and `symbol_size_max`, always suffice.
// Equal seeds draw the same combination: use a new seed for each call.
CorridorStatus corridor_block_decoder_recode(const struct CorridorBlockDecoder *handle,
                                             uint64_t seed,
                                             uint8_t *vector_out,
                                             size_t vector_len,
                                             size_t *count_out,
                                             uint8_t *payload_out,
                                             size_t payload_len,
                                             size_t *len_out);

// Rank: number of innovative symbols held; 0 for null.
size_t corridor_block_decoder_rank(const struct CorridorBlockDecoder *handle);

// One more than the highest index seen so far; 0 for null.
size_t corridor_block_decoder_known_count(const struct CorridorBlockDecoder *handle);

// Number of decoded symbols; 0 for null.
size_t corridor_block_decoder_decoded_count(const struct CorridorBlockDecoder *handle);

// Whether all symbols of the block are decoded; false for null.
bool corridor_block_decoder_is_complete(const struct CorridorBlockDecoder *handle);

// Returns a pointer to symbol `index`, if it is decoded; else `CORRIDOR_STATUS_NOTHING`. The bytes
// stay valid until the handle is next passed to a function that takes it as non-const.
CorridorStatus corridor_block_decoder_symbol(const struct CorridorBlockDecoder *handle,
                                             size_t index,
                                             const uint8_t **symbol_out,
                                             size_t *len_out);

// Writes a bitmap of decoded symbols: bit `i % 8` (least significant first) of byte `i / 8` for
// symbol `i`, as far as the buffer reaches.
CorridorStatus corridor_block_decoder_decoded_bitmap(const struct CorridorBlockDecoder *handle,
                                                     uint8_t *out,
                                                     size_t out_len);

// Clears the block for the next one; keeps the memory.
CorridorStatus corridor_block_decoder_reset(struct CorridorBlockDecoder *handle);

// Makes a recoder of blocks of `block_size` symbols of up to `symbol_size_max` bytes, over the
// field of order 2, 16 or 256. Allocates all memory.
CorridorStatus corridor_block_recoder_new(uint32_t field_order,
                                          size_t block_size,
                                          size_t symbol_size_max,
                                          struct CorridorBlockRecoder **out);

// Frees the handle; null is allowed.
void corridor_block_recoder_free(struct CorridorBlockRecoder *handle);

// Adds source symbol `index`: `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
CorridorStatus corridor_block_recoder_add_source(struct CorridorBlockRecoder *handle,
                                                 size_t index,
                                                 const uint8_t *symbol,
                                                 size_t symbol_len);

// Adds a coded symbol, the combination of the first `count` symbols with the given coding vector:
// `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
CorridorStatus corridor_block_recoder_add_coded(struct CorridorBlockRecoder *handle,
                                                const uint8_t *vector,
                                                size_t vector_len,
                                                size_t count,
                                                const uint8_t *payload,
                                                size_t payload_len);

// Writes a random combination of all symbols held: its coding vector over the first `*count_out`
// symbols, and its payload of `*len_out` bytes. `CORRIDOR_STATUS_NOTHING` if nothing is held, or a
// buffer is too short: the vector length of the block size, and `symbol_size_max`, always suffice.
// Equal seeds draw the same combination: use a new seed for each call.
CorridorStatus corridor_block_recoder_recode(const struct CorridorBlockRecoder *handle,
                                             uint64_t seed,
                                             uint8_t *vector_out,
                                             size_t vector_len,
                                             size_t *count_out,
                                             uint8_t *payload_out,
                                             size_t payload_len,
                                             size_t *len_out);

// Rank: number of innovative symbols held; 0 for null.
size_t corridor_block_recoder_rank(const struct CorridorBlockRecoder *handle);

// One more than the highest index seen so far; 0 for null.
size_t corridor_block_recoder_known_count(const struct CorridorBlockRecoder *handle);

// Clears the block for the next one; keeps the memory.
CorridorStatus corridor_block_recoder_reset(struct CorridorBlockRecoder *handle);

// A description of a status, in English, valid forever; never null.
const char *corridor_status_text(int32_t status);

// Makes an encoder that holds up to `window_size` symbols of up to `symbol_size_max` bytes, the
// first with id `first`, over the field of order 2, 16 or 256. Allocates all memory.
CorridorStatus corridor_window_encoder_new(uint32_t field_order,
                                           size_t window_size,
                                           size_t symbol_size_max,
                                           uint64_t first,
                                           struct CorridorWindowEncoder **out);

// Frees the handle; null is allowed.
void corridor_window_encoder_free(struct CorridorWindowEncoder *handle);

// Appends a source symbol, and writes its id if `id_out` is not null.
CorridorStatus corridor_window_encoder_push(struct CorridorWindowEncoder *handle,
                                            const uint8_t *symbol,
                                            size_t symbol_len,
                                            uint64_t *id_out);

// Writes the combination of the `count` symbols from id `first` on with the given coding vector,
// and its length in bytes. A buffer of `symbol_size_max` bytes is always long enough.
CorridorStatus corridor_window_encoder_encode(const struct CorridorWindowEncoder *handle,
                                              uint64_t first,
                                              size_t count,
                                              const uint8_t *vector,
                                              size_t vector_len,
                                              uint8_t *out,
                                              size_t out_len,
                                              size_t *len_out);

// Writes the combination of the `count` symbols from id `first` on with the vector that the seed
// expands to, and its length in bytes. A buffer of `symbol_size_max` bytes is always long enough.
CorridorStatus corridor_window_encoder_encode_seed(const struct CorridorWindowEncoder *handle,
                                                   uint64_t first,
                                                   size_t count,
                                                   uint32_t seed,
                                                   uint8_t *out,
                                                   size_t out_len,
                                                   size_t *len_out);

// Writes the combination of the `count` symbols from id `first` on with the vector that the
// repair key of RFC 8681 expands to, over the field of order 2 or 256, and its length in bytes.
// `density_threshold` is in 0..=15. A buffer of `symbol_size_max` bytes is always long enough.
CorridorStatus corridor_window_encoder_encode_repair_key(const struct CorridorWindowEncoder *handle,
                                                         uint64_t first,
                                                         size_t count,
                                                         uint16_t repair_key,
                                                         uint8_t density_threshold,
                                                         uint8_t *out,
                                                         size_t out_len,
                                                         size_t *len_out);

// Drops all symbols before `id`.
CorridorStatus corridor_window_encoder_advance_to(struct CorridorWindowEncoder *handle,
                                                  uint64_t id);

// Id of the first symbol held; 0 for null.
uint64_t corridor_window_encoder_base(const struct CorridorWindowEncoder *handle);

// Id of the next symbol to be pushed; 0 for null.
uint64_t corridor_window_encoder_end(const struct CorridorWindowEncoder *handle);

// Empties the window; the next symbol gets the id `first`.
CorridorStatus corridor_window_encoder_reset(struct CorridorWindowEncoder *handle, uint64_t first);

// Makes a decoder that holds up to `window_size` symbols of up to `symbol_size_max` bytes, from id
// `first` on, over the field of order 2, 16 or 256. Allocates all memory.
CorridorStatus corridor_window_decoder_new(uint32_t field_order,
                                           size_t window_size,
                                           size_t symbol_size_max,
                                           uint64_t first,
                                           struct CorridorWindowDecoder **out);

// Frees the handle; null is allowed.
void corridor_window_decoder_free(struct CorridorWindowDecoder *handle);

// Adds source symbol `id`: innovative, dependent, stale or ahead.
CorridorStatus corridor_window_decoder_add_source(struct CorridorWindowDecoder *handle,
                                                  uint64_t id,
                                                  const uint8_t *symbol,
                                                  size_t symbol_len);

// Adds a coded symbol, the combination of the `count` symbols from id `first` on with the
// given coding vector: innovative, dependent, stale or ahead.
CorridorStatus corridor_window_decoder_add_coded(struct CorridorWindowDecoder *handle,
                                                 uint64_t first,
                                                 size_t count,
                                                 const uint8_t *vector,
                                                 size_t vector_len,
                                                 const uint8_t *payload,
                                                 size_t payload_len);

// Adds a coded symbol, the combination of the `count` symbols from id `first` on with the
// vector that the seed expands to: innovative, dependent, stale or ahead.
CorridorStatus corridor_window_decoder_add_coded_seed(struct CorridorWindowDecoder *handle,
                                                      uint64_t first,
                                                      size_t count,
                                                      uint32_t seed,
                                                      const uint8_t *payload,
                                                      size_t payload_len);

// Adds a coded symbol, the combination of the `count` symbols from id `first` on with the
// vector that the repair key of RFC 8681 expands to, over the field of order 2 or 256;
// `density_threshold` is in 0..=15: innovative, dependent, stale or ahead.
CorridorStatus corridor_window_decoder_add_coded_repair_key(struct CorridorWindowDecoder *handle,
                                                            uint64_t first,
                                                            size_t count,
                                                            uint16_t repair_key,
                                                            uint8_t density_threshold,
                                                            const uint8_t *payload,
                                                            size_t payload_len);

// Drops all symbols before `id`, and writes how many of them were not decoded if `missed_out` is
// not null.
CorridorStatus corridor_window_decoder_advance_to(struct CorridorWindowDecoder *handle,
                                                  uint64_t id,
                                                  uint64_t *missed_out);

// Writes the lowest decoded id that this function has not reported yet; `CORRIDOR_STATUS_NOTHING`
// if there is none.
CorridorStatus corridor_window_decoder_poll_decoded(struct CorridorWindowDecoder *handle,
                                                    uint64_t *id_out);

// Returns a pointer to symbol `id`, if it is decoded; else `CORRIDOR_STATUS_NOTHING`. The bytes
// stay valid until the handle is next passed to a function that takes it as non-const.
CorridorStatus corridor_window_decoder_symbol(const struct CorridorWindowDecoder *handle,
                                              uint64_t id,
                                              const uint8_t **symbol_out,
                                              size_t *len_out);

// Writes a bitmap of missing symbols: bit `i % 8` (least significant first) of byte `i / 8` for id
// `base + i`, as far as the buffer reaches.
CorridorStatus corridor_window_decoder_missing_bitmap(const struct CorridorWindowDecoder *handle,
                                                      uint8_t *out,
                                                      size_t out_len);

// Writes a random combination of the symbols held that only cover the `count` symbols from id
// `first` on: its coding vector over them, and its payload of `*len_out` bytes;
// `CORRIDOR_STATUS_NOTHING` if there are none. Equal seeds draw the same combination: use a new
// seed for each call.
CorridorStatus corridor_window_decoder_recode(const struct CorridorWindowDecoder *handle,
                                              uint64_t first,
                                              size_t count,
                                              uint64_t seed,
                                              uint8_t *vector_out,
                                              size_t vector_len,
                                              uint8_t *payload_out,
                                              size_t payload_len,
                                              size_t *len_out);

// Id of the first symbol of the window; 0 for null.
uint64_t corridor_window_decoder_base(const struct CorridorWindowDecoder *handle);

// One more than the highest id that any received symbol covers; 0 for null.
uint64_t corridor_window_decoder_end(const struct CorridorWindowDecoder *handle);

// Id of the first symbol that is not decoded; 0 for null.
uint64_t corridor_window_decoder_in_order_end(const struct CorridorWindowDecoder *handle);

// Rank: decoded symbols, plus coded symbols held; 0 for null.
size_t corridor_window_decoder_rank(const struct CorridorWindowDecoder *handle);

// Number of symbols in the window that are not decoded; 0 for null.
size_t corridor_window_decoder_missing_count(const struct CorridorWindowDecoder *handle);

// Number of innovative symbols needed to decode the whole window; 0 for null.
size_t corridor_window_decoder_deficit(const struct CorridorWindowDecoder *handle);

// Clears the decoder; the window begins with `first`.
CorridorStatus corridor_window_decoder_reset(struct CorridorWindowDecoder *handle, uint64_t first);

// Makes an encoder of blocks of up to `block_size` symbols of up to `symbol_size_max` bytes, over
// the field of order 2, 16 or 256. Allocates all memory.
CorridorStatus corridor_block_encoder_new(uint32_t field_order,
                                          size_t block_size,
                                          size_t symbol_size_max,
                                          struct CorridorBlockEncoder **out);

// Frees the handle; null is allowed.
void corridor_block_encoder_free(struct CorridorBlockEncoder *handle);

// Appends a source symbol to the block, and writes its index if `index_out` is not null.
CorridorStatus corridor_block_encoder_push(struct CorridorBlockEncoder *handle,
                                           const uint8_t *symbol,
                                           size_t symbol_len,
                                           size_t *index_out);

// Writes the combination of the first `count` symbols with the given coding vector, and its length
// in bytes. A buffer of `symbol_size_max` bytes is always long enough.
CorridorStatus corridor_block_encoder_encode(const struct CorridorBlockEncoder *handle,
                                             const uint8_t *vector,
                                             size_t vector_len,
                                             size_t count,
                                             uint8_t *out,
                                             size_t out_len,
                                             size_t *len_out);

// Number of source symbols in the block so far; 0 for null.
size_t corridor_block_encoder_count(const struct CorridorBlockEncoder *handle);

// Clears the block for the next one; keeps the memory.
CorridorStatus corridor_block_encoder_clear(struct CorridorBlockEncoder *handle);

// Makes a decoder of blocks of `block_size` symbols of up to `symbol_size_max` bytes, over the
// field of order 2, 16 or 256. Allocates all memory.
CorridorStatus corridor_block_decoder_new(uint32_t field_order,
                                          size_t block_size,
                                          size_t symbol_size_max,
                                          struct CorridorBlockDecoder **out);

// Frees the handle; null is allowed.
void corridor_block_decoder_free(struct CorridorBlockDecoder *handle);

// Adds source symbol `index`: `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
CorridorStatus corridor_block_decoder_add_source(struct CorridorBlockDecoder *handle,
                                                 size_t index,
                                                 const uint8_t *symbol,
                                                 size_t symbol_len);

// Adds a coded symbol, the combination of the first `count` symbols with the given coding vector:
// `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
CorridorStatus corridor_block_decoder_add_coded(struct CorridorBlockDecoder *handle,
                                                const uint8_t *vector,
                                                size_t vector_len,
                                                size_t count,
                                                const uint8_t *payload,
                                                size_t payload_len);

// Writes a random combination of all symbols held: its coding vector over the first `*count_out`
// symbols, and its payload of `*len_out` bytes. `CORRIDOR_STATUS_NOTHING` if nothing is held, or a
// buffer is too short: the vector length of the block size, and `symbol_size_max`, always suffice.
// Equal seeds draw the same combination: use a new seed for each call.
CorridorStatus corridor_block_decoder_recode(const struct CorridorBlockDecoder *handle,
                                             uint64_t seed,
                                             uint8_t *vector_out,
                                             size_t vector_len,
                                             size_t *count_out,
                                             uint8_t *payload_out,
                                             size_t payload_len,
                                             size_t *len_out);

// Rank: number of innovative symbols held; 0 for null.
size_t corridor_block_decoder_rank(const struct CorridorBlockDecoder *handle);

// One more than the highest index seen so far; 0 for null.
size_t corridor_block_decoder_known_count(const struct CorridorBlockDecoder *handle);

// Number of decoded symbols; 0 for null.
size_t corridor_block_decoder_decoded_count(const struct CorridorBlockDecoder *handle);

// Whether all symbols of the block are decoded; false for null.
bool corridor_block_decoder_is_complete(const struct CorridorBlockDecoder *handle);

// Returns a pointer to symbol `index`, if it is decoded; else `CORRIDOR_STATUS_NOTHING`. The bytes
// stay valid until the handle is next passed to a function that takes it as non-const.
CorridorStatus corridor_block_decoder_symbol(const struct CorridorBlockDecoder *handle,
                                             size_t index,
                                             const uint8_t **symbol_out,
                                             size_t *len_out);

// Writes a bitmap of decoded symbols: bit `i % 8` (least significant first) of byte `i / 8` for
// symbol `i`, as far as the buffer reaches.
CorridorStatus corridor_block_decoder_decoded_bitmap(const struct CorridorBlockDecoder *handle,
                                                     uint8_t *out,
                                                     size_t out_len);

// Clears the block for the next one; keeps the memory.
CorridorStatus corridor_block_decoder_reset(struct CorridorBlockDecoder *handle);

// Makes a recoder of blocks of `block_size` symbols of up to `symbol_size_max` bytes, over the
// field of order 2, 16 or 256. Allocates all memory.
CorridorStatus corridor_block_recoder_new(uint32_t field_order,
                                          size_t block_size,
                                          size_t symbol_size_max,
                                          struct CorridorBlockRecoder **out);

// Frees the handle; null is allowed.
void corridor_block_recoder_free(struct CorridorBlockRecoder *handle);

// Adds source symbol `index`: `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
CorridorStatus corridor_block_recoder_add_source(struct CorridorBlockRecoder *handle,
                                                 size_t index,
                                                 const uint8_t *symbol,
                                                 size_t symbol_len);

// Adds a coded symbol, the combination of the first `count` symbols with the given coding vector:
// `CORRIDOR_STATUS_INNOVATIVE` or `..._DEPENDENT`.
CorridorStatus corridor_block_recoder_add_coded(struct CorridorBlockRecoder *handle,
                                                const uint8_t *vector,
                                                size_t vector_len,
                                                size_t count,
                                                const uint8_t *payload,
                                                size_t payload_len);

// Writes a random combination of all symbols held: its coding vector over the first `*count_out`
// symbols, and its payload of `*len_out` bytes. `CORRIDOR_STATUS_NOTHING` if nothing is held, or a
// buffer is too short: the vector length of the block size, and `symbol_size_max`, always suffice.
// Equal seeds draw the same combination: use a new seed for each call.
CorridorStatus corridor_block_recoder_recode(const struct CorridorBlockRecoder *handle,
                                             uint64_t seed,
                                             uint8_t *vector_out,
                                             size_t vector_len,
                                             size_t *count_out,
                                             uint8_t *payload_out,
                                             size_t payload_len,
                                             size_t *len_out);

// Rank: number of innovative symbols held; 0 for null.
size_t corridor_block_recoder_rank(const struct CorridorBlockRecoder *handle);

// One more than the highest index seen so far; 0 for null.
size_t corridor_block_recoder_known_count(const struct CorridorBlockRecoder *handle);

// Clears the block for the next one; keeps the memory.
CorridorStatus corridor_block_recoder_reset(struct CorridorBlockRecoder *handle);

// Makes an encoder that holds up to `window_size` symbols of up to `symbol_size_max` bytes, the
// first with id `first`, over the field of order 2, 16 or 256. Allocates all memory.
CorridorStatus corridor_window_encoder_new(uint32_t field_order,
                                           size_t window_size,
                                           size_t symbol_size_max,
                                           uint64_t first,
                                           struct CorridorWindowEncoder **out);

// Frees the handle; null is allowed.
void corridor_window_encoder_free(struct CorridorWindowEncoder *handle);

// Appends a source symbol, and writes its id if `id_out` is not null.
CorridorStatus corridor_window_encoder_push(struct CorridorWindowEncoder *handle,
                                            const uint8_t *symbol,
                                            size_t symbol_len,
                                            uint64_t *id_out);

// Writes the combination of the `count` symbols from id `first` on with the given coding vector,
// and its length in bytes. A buffer of `symbol_size_max` bytes is always long enough.
CorridorStatus corridor_window_encoder_encode(const struct CorridorWindowEncoder *handle,
                                              uint64_t first,
                                              size_t count,
                                              const uint8_t *vector,
                                              size_t vector_len,
                                              uint8_t *out,
                                              size_t out_len,
                                              size_t *len_out);

// Writes the combination of the `count` symbols from id `first` on with the vector that the seed
// expands to, and its length in bytes. A buffer of `symbol_size_max` bytes is always long enough.
CorridorStatus corridor_window_encoder_encode_seed(const struct CorridorWindowEncoder *handle,
                                                   uint64_t first,
                                                   size_t count,
                                                   uint32_t seed,
                                                   uint8_t *out,
                                                   size_t out_len,
                                                   size_t *len_out);

// Writes the combination of the `count` symbols from id `first` on with the vector that the
// repair key of RFC 8681 expands to, over the field of order 2 or 256, and its length in bytes.
// `density_threshold` is in 0..=15. A buffer of `symbol_size_max` bytes is always long enough.
CorridorStatus corridor_window_encoder_encode_repair_key(const struct CorridorWindowEncoder *handle,
                                                         uint64_t first,
                                                         size_t count,
                                                         uint16_t repair_key,
                                                         uint8_t density_threshold,
                                                         uint8_t *out,
                                                         size_t out_len,
                                                         size_t *len_out);

// Drops all symbols before `id`.
CorridorStatus corridor_window_encoder_advance_to(struct CorridorWindowEncoder *handle,
                                                  uint64_t id);

// Id of the first symbol held; 0 for null.
uint64_t corridor_window_encoder_base(const struct CorridorWindowEncoder *handle);

// Id of the next symbol to be pushed; 0 for null.
uint64_t corridor_window_encoder_end(const struct CorridorWindowEncoder *handle);

// Empties the window; the next symbol gets the id `first`.
CorridorStatus corridor_window_encoder_reset(struct CorridorWindowEncoder *handle, uint64_t first);

// Makes a decoder that holds up to `window_size` symbols of up to `symbol_size_max` bytes, from id
// `first` on, over the field of order 2, 16 or 256. Allocates all memory.
CorridorStatus corridor_window_decoder_new(uint32_t field_order,
                                           size_t window_size,
                                           size_t symbol_size_max,
                                           uint64_t first,
                                           struct CorridorWindowDecoder **out);

// Frees the handle; null is allowed.
void corridor_window_decoder_free(struct CorridorWindowDecoder *handle);

// Adds source symbol `id`: innovative, dependent, stale or ahead.
CorridorStatus corridor_window_decoder_add_source(struct CorridorWindowDecoder *handle,
                                                  uint64_t id,
                                                  const uint8_t *symbol,
                                                  size_t symbol_len);

// Adds a coded symbol, the combination of the `count` symbols from id `first` on with the
// given coding vector: innovative, dependent, stale or ahead.
CorridorStatus corridor_window_decoder_add_coded(struct CorridorWindowDecoder *handle,
                                                 uint64_t first,
                                                 size_t count,
                                                 const uint8_t *vector,
                                                 size_t vector_len,
                                                 const uint8_t *payload,
                                                 size_t payload_len);

// Adds a coded symbol, the combination of the `count` symbols from id `first` on with the
// vector that the seed expands to: innovative, dependent, stale or ahead.
CorridorStatus corridor_window_decoder_add_coded_seed(struct CorridorWindowDecoder *handle,
                                                      uint64_t first,
                                                      size_t count,
                                                      uint32_t seed,
                                                      const uint8_t *payload,
                                                      size_t payload_len);

// Adds a coded symbol, the combination of the `count` symbols from id `first` on with the
// vector that the repair key of RFC 8681 expands to, over the field of order 2 or 256;
// `density_threshold` is in 0..=15: innovative, dependent, stale or ahead.
CorridorStatus corridor_window_decoder_add_coded_repair_key(struct CorridorWindowDecoder *handle,
                                                            uint64_t first,
                                                            size_t count,
                                                            uint16_t repair_key,
                                                            uint8_t density_threshold,
                                                            const uint8_t *payload,
                                                            size_t payload_len);

// Drops all symbols before `id`, and writes how many of them were not decoded if `missed_out` is
// not null.
CorridorStatus corridor_window_decoder_advance_to(struct CorridorWindowDecoder *handle,
                                                  uint64_t id,
                                                  uint64_t *missed_out);

// Writes the lowest decoded id that this function has not reported yet; `CORRIDOR_STATUS_NOTHING`
// if there is none.
CorridorStatus corridor_window_decoder_poll_decoded(struct CorridorWindowDecoder *handle,
                                                    uint64_t *id_out);

// Returns a pointer to symbol `id`, if it is decoded; else `CORRIDOR_STATUS_NOTHING`. The bytes
// stay valid until the handle is next passed to a function that takes it as non-const.
CorridorStatus corridor_window_decoder_symbol(const struct CorridorWindowDecoder *handle,
                                              uint64_t id,
                                              const uint8_t **symbol_out,
                                              size_t *len_out);

// Writes a bitmap of missing symbols: bit `i % 8` (least significant first) of byte `i / 8` for id
// `base + i`, as far as the buffer reaches.
CorridorStatus corridor_window_decoder_missing_bitmap(const struct CorridorWindowDecoder *handle,
                                                      uint8_t *out,
                                                      size_t out_len);

// Writes a random combination of the symbols held that only cover the `count` symbols from id
// `first` on: its coding vector over them, and its payload of `*len_out` bytes;
// `CORRIDOR_STATUS_NOTHING` if there are none. Equal seeds draw the same combination: use a new
// seed for each call.
CorridorStatus corridor_window_decoder_recode(const struct CorridorWindowDecoder *handle,
                                              uint64_t first,
                                              size_t count,
                                              uint64_t seed,
                                              uint8_t *vector_out,
                                              size_t vector_len,
                                              uint8_t *payload_out,
                                              size_t payload_len,
                                              size_t *len_out);

// Id of the first symbol of the window; 0 for null.
uint64_t corridor_window_decoder_base(const struct CorridorWindowDecoder *handle);

// One more than the highest id that any received symbol covers; 0 for null.
uint64_t corridor_window_decoder_end(const struct CorridorWindowDecoder *handle);

// Id of the first symbol that is not decoded; 0 for null.
uint64_t corridor_window_decoder_in_order_end(const struct CorridorWindowDecoder *handle);

// Rank: decoded symbols, plus coded symbols held; 0 for null.
size_t corridor_window_decoder_rank(const struct CorridorWindowDecoder *handle);

// Number of symbols in the window that are not decoded; 0 for null.
size_t corridor_window_decoder_missing_count(const struct CorridorWindowDecoder *handle);

// Number of innovative symbols needed to decode the whole window; 0 for null.
size_t corridor_window_decoder_deficit(const struct CorridorWindowDecoder *handle);

// Clears the decoder; the window begins with `first`.
CorridorStatus corridor_window_decoder_reset(struct CorridorWindowDecoder *handle, uint64_t first);

// Makes `symbol_count` coded symbols of the first `count` symbols: writes the one with the i-th
// coding vector of `vectors`, which are concatenated, to `out + i * stride`. All symbols of a
// batch are padded with zeros to the longest of them, `*len_out` bytes; a stride of
// `symbol_size_max` bytes always suffices. `symbol_count` is at most `CORRIDOR_BATCH_MAX`, else
// `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
CorridorStatus corridor_block_encoder_encode_batch(const struct CorridorBlockEncoder *handle,
                                                   const uint8_t *vectors,
                                                   size_t vectors_len,
                                                   size_t count,
                                                   size_t symbol_count,
                                                   uint8_t *out,
                                                   size_t stride,
                                                   size_t *len_out);

// Draws `symbol_count` combinations of all symbols held: writes their coding vectors over the
// first `*count_out` symbols one after the other, and their payloads, all `*len_out` bytes long,
// to `payloads_out + i * stride`. `CORRIDOR_STATUS_NOTHING` if nothing is held, or a buffer is too
// short: vector lengths of the block size, and a stride of `symbol_size_max`, always suffice.
// Equal seeds draw the same combinations: use a new seed for each call. `symbol_count` is at most
// `CORRIDOR_BATCH_MAX`, else `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
CorridorStatus corridor_block_recoder_recode_batch(const struct CorridorBlockRecoder *handle,
                                                   uint64_t seed,
                                                   uint8_t *vectors_out,
                                                   size_t vectors_len,
                                                   size_t *count_out,
                                                   size_t symbol_count,
                                                   uint8_t *payloads_out,
                                                   size_t stride,
                                                   size_t *len_out);

// Draws combinations of all symbols held, like `corridor_block_recoder_recode_batch`.
CorridorStatus corridor_block_decoder_recode_batch(const struct CorridorBlockDecoder *handle,
                                                   uint64_t seed,
                                                   uint8_t *vectors_out,
                                                   size_t vectors_len,
                                                   size_t *count_out,
                                                   size_t symbol_count,
                                                   uint8_t *payloads_out,
                                                   size_t stride,
                                                   size_t *len_out);

// Makes `symbol_count` coded symbols of the `count` symbols from id `first` on: writes the one
// with the i-th coding vector of `vectors`, which are concatenated, to `out + i * stride`. All
// symbols of a batch are padded with zeros to the longest of them, `*len_out` bytes; a stride of
// `symbol_size_max` bytes always suffices. `symbol_count` is at most `CORRIDOR_BATCH_MAX`, else
// `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
CorridorStatus corridor_window_encoder_encode_batch(const struct CorridorWindowEncoder *handle,
                                                    uint64_t first,
                                                    size_t count,
                                                    const uint8_t *vectors,
                                                    size_t vectors_len,
                                                    size_t symbol_count,
                                                    uint8_t *out,
                                                    size_t stride,
                                                    size_t *len_out);

// The same with the vectors that the seeds `seed`, `seed + 1` and so on expand to; after the
// highest seed comes 0.
CorridorStatus corridor_window_encoder_encode_batch_seeds(const struct CorridorWindowEncoder *handle,
                                                          uint64_t first,
                                                          size_t count,
                                                          uint32_t seed,
                                                          size_t symbol_count,
                                                          uint8_t *out,
                                                          size_t stride,
                                                          size_t *len_out);

// Draws `symbol_count` combinations of the symbols held that only cover the `count` symbols from
// id `first` on: writes their coding vectors over this run one after the other, and their
// payloads, all `*len_out` bytes long, to `payloads_out + i * stride`. `CORRIDOR_STATUS_NOTHING`
// if there is nothing to combine. Equal seeds draw the same combinations: use a new seed for each
// call. `symbol_count` is at most `CORRIDOR_BATCH_MAX`, else `CORRIDOR_STATUS_COUNT_OUT_OF_RANGE`.
CorridorStatus corridor_window_decoder_recode_batch(const struct CorridorWindowDecoder *handle,
                                                    uint64_t first,
                                                    size_t count,
                                                    uint64_t seed,
                                                    uint8_t *vectors_out,
                                                    size_t vectors_len,
                                                    size_t symbol_count,
                                                    uint8_t *payloads_out,
                                                    size_t stride,
                                                    size_t *len_out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CORRIDOR_CODEC_H */
