/* marbles as a WebAssembly module (player/wasm/INTERFACE.md):
 *     sh build.sh
 *     reprise verify --sim wasm:marbles.wasm match.rply
 */
#include "../../process/samples/messages.h"

static uint8_t message[1 << 20];

__attribute__((export_name("reprise_buffer"))) uint8_t *reprise_buffer(uint32_t size) {
    return size <= sizeof message ? message : 0;
}

__attribute__((export_name("reprise_message"))) uint8_t *reprise_message(uint32_t size) {
    (void)size; /* the length is in the head, too */
    handle(message);
    return answer;
}
