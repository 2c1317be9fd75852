/* Sends a block over a lossy link, and a short stream through a window. Build, for instance:
 *   cargo build --release -p corridor-capi
 *   cc -I include examples/block.c ../../target/release/libcorridor_capi.a -lpthread -ldl -lm
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corridor_codec.h"

enum { BLOCK_SIZE = 16, SYMBOL_SIZE_MAX = 64, FIELD_ORDER = 256, BATCH_SIZE = 4 };

/* Ends the program on an error; otherwise returns the call's status. */
static CorridorStatus check(CorridorStatus status)
{
    if (status < 0) {
        fprintf(stderr, "corridor: %s\n", corridor_status_text(status));
        exit(EXIT_FAILURE);
    }
    return status;
}

static size_t write_symbol(unsigned number, uint8_t *out)
{
    return (size_t)snprintf((char *)out, SYMBOL_SIZE_MAX, "This is symbol %u.", number);
}

static void send_a_block(void)
{
    CorridorBlockEncoder *encoder;
    CorridorBlockDecoder *decoder;
    uint8_t symbol[SYMBOL_SIZE_MAX];
    uint8_t vectors[BATCH_SIZE][BLOCK_SIZE], payloads[BATCH_SIZE][SYMBOL_SIZE_MAX];
    size_t len;

    check(corridor_block_encoder_new(FIELD_ORDER, BLOCK_SIZE, SYMBOL_SIZE_MAX, &encoder));
    check(corridor_block_decoder_new(FIELD_ORDER, BLOCK_SIZE, SYMBOL_SIZE_MAX, &decoder));

    /* Source symbols are sent uncoded; every fourth is lost. */
    for (unsigned i = 0; i < BLOCK_SIZE; i++) {
        len = write_symbol(i, symbol);
        check(corridor_block_encoder_push(encoder, symbol, len, NULL));
        if (i % 4 != 0)
            check(corridor_block_decoder_add_source(decoder, i, symbol, len));
    }

    /* Coded symbols repair any losses. Batches are faster than single symbols. */
    unsigned sent = 0;
    for (uint32_t seed = 1; !corridor_block_decoder_is_complete(decoder);) {
        for (unsigned i = 0; i < BATCH_SIZE; i++, seed++)
            check(corridor_expand_seed(FIELD_ORDER, seed, BLOCK_SIZE, vectors[i], BLOCK_SIZE));
        check(corridor_block_encoder_encode_batch(encoder, vectors[0], sizeof vectors, BLOCK_SIZE,
                                                  BATCH_SIZE, payloads[0], SYMBOL_SIZE_MAX, &len));
        for (unsigned i = 0; i < BATCH_SIZE; i++, sent++)
            check(corridor_block_decoder_add_coded(decoder, vectors[i], BLOCK_SIZE, BLOCK_SIZE,
                                                   payloads[i], len));
    }

    for (unsigned i = 0; i < BLOCK_SIZE; i++) {
        const uint8_t *decoded;
        size_t expected_len = write_symbol(i, symbol);
        if (check(corridor_block_decoder_symbol(decoder, i, &decoded, &len)) != CORRIDOR_STATUS_OK
            || len < expected_len || memcmp(decoded, symbol, expected_len) != 0) {
            fprintf(stderr, "symbol %u is not what was sent\n", i);
            exit(EXIT_FAILURE);
        }
    }
    printf("block: %d symbols, %d lost, %u coded symbols\n", BLOCK_SIZE, BLOCK_SIZE / 4, sent);
    corridor_block_encoder_free(encoder);
    corridor_block_decoder_free(decoder);
}

static void send_a_stream(void)
{
    CorridorWindowEncoder *encoder;
    CorridorWindowDecoder *decoder;
    uint8_t symbol[SYMBOL_SIZE_MAX], payloads[2][SYMBOL_SIZE_MAX];
    uint64_t id, delivered = 0;
    size_t len;

    check(corridor_window_encoder_new(FIELD_ORDER, 32, SYMBOL_SIZE_MAX, 0, &encoder));
    check(corridor_window_decoder_new(FIELD_ORDER, 32, SYMBOL_SIZE_MAX, 0, &decoder));
    for (unsigned i = 0; i < 1000; i++) {
        len = write_symbol(i, symbol);
        check(corridor_window_encoder_push(encoder, symbol, len, &id));
        if (i % 7 != 3)
            check(corridor_window_decoder_add_source(decoder, id, symbol, len));

        /* Two repair symbols after every tenth, over all unacknowledged source symbols. */
        if (i % 10 == 9) {
            uint64_t base = corridor_window_encoder_base(encoder);
            size_t count = (size_t)(corridor_window_encoder_end(encoder) - base);
            check(corridor_window_encoder_encode_batch_seeds(encoder, base, count, i, 2,
                                                             payloads[0], SYMBOL_SIZE_MAX, &len));
            for (unsigned j = 0; j < 2; j++)
                check(corridor_window_decoder_add_coded_seed(decoder, base, count, i + j,
                                                             payloads[j], len));
        }

        /* Symbols decoded in order are delivered and acknowledged. */
        while (delivered < corridor_window_decoder_in_order_end(decoder)) {
            const uint8_t *decoded;
            size_t expected_len = write_symbol((unsigned)delivered, symbol);
            check(corridor_window_decoder_symbol(decoder, delivered, &decoded, &len));
            if (len < expected_len || memcmp(decoded, symbol, expected_len) != 0) {
                fprintf(stderr, "symbol %" PRIu64 " is not what was sent\n", delivered);
                exit(EXIT_FAILURE);
            }
            delivered++;
        }
        check(corridor_window_decoder_advance_to(decoder, delivered, NULL));
        check(corridor_window_encoder_advance_to(encoder, delivered));
    }
    printf("window: %" PRIu64 " of 1000 symbols delivered\n", delivered);
    corridor_window_encoder_free(encoder);
    corridor_window_decoder_free(decoder);
}

int main(void)
{
    send_a_block();
    send_a_stream();
    return EXIT_SUCCESS;
}
