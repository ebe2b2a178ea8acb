/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes of layers, and how large their sums can become.
 */
#include "nnb_records.h"

/* Whether windows on `length` values make `results`. */
static int windows_fit(const nnb_layer *l, int axis, int32_t length, int32_t results)
{
    int32_t reach = length + 2 * l->pad[axis] - (l->kernel[axis] - 1) * l->dilation[axis] - 1;

    return reach >= 0 && reach / l->stride[axis] + 1 == results;
}

int nnb_weights_fit(const uint8_t *blob, const nnb_header *header, const nnb_layer *l)
{
    nnb_tensor_record x, y, w, b;
    uint64_t inputs;

    nnb_read_tensor(blob, header, nnb_in(l, 0), &x);
    nnb_read_tensor(blob, header, l->output, &y);
    nnb_read_tensor(blob, header, l->weights, &w);
    inputs = (uint64_t)x.rows * x.columns * x.channels;
    if (l->op == NNB_FC ? w.rows != 1 || w.columns != 1 || w.channels != inputs
                        : w.rows != l->kernel[0] || w.columns != l->kernel[1]
                              || w.channels != x.channels / l->groups) {
        return 0;
    }
    if (l->bias == NNB_NONE) {
        return w.count == y.channels;
    }
    nnb_read_tensor(blob, header, l->bias, &b);
    return w.count == y.channels && b.channels == y.channels;
}

int nnb_shapes_fit(const uint8_t *blob, const nnb_header *header, const nnb_layer *l)
{
    nnb_tensor_record x, y;
    int pools = l->op == NNB_MAXPOOL || l->op == NNB_AVGPOOL;

    nnb_read_tensor(blob, header, nnb_in(l, 0), &x);
    nnb_read_tensor(blob, header, l->output, &y);
    if ((pools || l->op <= NNB_DEPTHWISE)
        && !(windows_fit(l, 0, x.rows, y.rows) && windows_fit(l, 1, x.columns, y.columns))) {
        return 0;
    }
    if (pools) {
        return x.channels == y.channels;
    }
    if (l->op == NNB_FC && (y.rows != 1 || y.columns != 1)) {
        return 0;
    }
    return l->op > NNB_FC || nnb_weights_fit(blob, header, l);
}

uint64_t nnb_sum_limit(const nnb_tensor_record *data, const nnb_tensor_record *weights)
{
    uint64_t taps = (uint64_t)weights->rows * weights->columns * weights->channels;

    /* the bytes of the file limit the taps to 2^35, those of few bits */
    return taps << ((weights->type == NNB_INT16 ? 15 : 7) + (data->type == NNB_INT16 ? 15 : 7));
}
