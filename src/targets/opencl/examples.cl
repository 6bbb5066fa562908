// Examples of kernels to compare: each operator of examples.json in one kernel and in several. T is float, or double
// where the truth is computed. Every kernel may be launched with more items than there is work.

// rank = sigmoid(x) + bias over rows of E.
__kernel void sigmoid_bias(__global const T* x, __global const T* bias, __global T* y, int rows, int columns,
                           int row_stride, int column_stride) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (column >= columns || row >= rows) return;
  const T score = (T)1 / ((T)1 + exp(-x[(size_t)row * row_stride + (size_t)column * column_stride]));
  y[(size_t)row * columns + column] = score + bias[column];
}

__kernel void sigmoid(__global const T* x, __global T* score, int rows, int columns, int row_stride,
                      int column_stride) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (column >= columns || row >= rows) return;
  score[(size_t)row * columns + column] =
      (T)1 / ((T)1 + exp(-x[(size_t)row * row_stride + (size_t)column * column_stride]));
}

__kernel void add_rows(__global const T* score, __global const T* bias, __global T* y, int rows, int columns) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (column >= columns || row >= rows) return;
  y[(size_t)row * columns + column] = score[(size_t)row * columns + column] + bias[column];
}

// y = a * b + c. In one expression a compiler may contract it to fma(a, b, c), which rounds once.
__kernel void mul_add(__global const T* a, __global const T* b, __global const T* c, __global T* y, int count) {
  const int i = get_global_id(0);
  if (i < count) y[i] = a[i] * b[i] + c[i];
}

__kernel void mul(__global const T* a, __global const T* b, __global T* product, int count) {
  const int i = get_global_id(0);
  if (i < count) product[i] = a[i] * b[i];
}

__kernel void add(__global const T* a, __global const T* b, __global T* sum, int count) {
  const int i = get_global_id(0);
  if (i < count) sum[i] = a[i] + b[i];
}

// Is element a at position i ahead of b at j? Larger first, NaN last, equal ones by position.
inline bool ahead(T a, int i, T b, int j) {
  if (isnan(a) || isnan(b)) return isnan(a) == isnan(b) ? i < j : isnan(b);
  return a > b || (a == b && i < j);
}

// One item a row: k times the best of what is left behind the last pick.
__kernel void topk(__global const T* x, __global T* values, __global int* indices, int rows, int columns, int k) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  __global const T* from = x + (size_t)row * columns;
  int last = -1;
  for (int slot = 0; slot < k; ++slot) {
    int best = -1;
    for (int i = 0; i < columns; ++i) {
      if (last >= 0 && !ahead(from[last], last, from[i], i)) continue;
      if (best < 0 || ahead(from[i], i, from[best], best)) best = i;
    }
    indices[(size_t)row * k + slot] = best;
    values[(size_t)row * k + slot] = from[best];
    last = best;
  }
}

// rank[i] = number of elements of the row that are ahead of element i.
__kernel void rank_rows(__global const T* x, __global int* rank, int rows, int columns) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (column >= columns || row >= rows) return;
  __global const T* from = x + (size_t)row * columns;
  int before = 0;
  for (int i = 0; i < columns; ++i) before += ahead(from[i], i, from[column], column) ? 1 : 0;
  rank[(size_t)row * columns + column] = before;
}

__kernel void take_ranked(__global const T* x, __global const int* rank, __global T* values, __global int* indices,
                          int rows, int columns, int k) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (column >= columns || row >= rows) return;
  const size_t at = (size_t)row * columns + column;
  if (rank[at] >= k) return;
  values[(size_t)row * k + rank[at]] = x[at];
  indices[(size_t)row * k + rank[at]] = column;
}

// Tokens in the order of their experts: out[position] = tokens[t], position in a stable sort of the flattened indices.
inline int position_of(__global const int* indices, int count, int at) {
  int before = 0;
  for (int i = 0; i < count; ++i) before += indices[i] < indices[at] || (indices[i] == indices[at] && i < at) ? 1 : 0;
  return before;
}

// One item a pick: finds its place and copies its row.
__kernel void permute(__global const T* tokens, __global const int* indices, __global int* position, __global T* out,
                      int count, int picks, int width) {
  const int at = get_global_id(0);
  if (at >= count) return;
  const int to = position_of(indices, count, at);
  position[at] = to;
  for (int i = 0; i < width; ++i) out[(size_t)to * width + i] = tokens[(size_t)(at / picks) * width + i];
}

__kernel void positions(__global const int* indices, __global int* position, int count) {
  const int at = get_global_id(0);
  if (at < count) position[at] = position_of(indices, count, at);
}

__kernel void scatter_rows(__global const T* tokens, __global const int* position, __global T* out, int count,
                           int picks, int width) {
  const int column = get_global_id(0);
  const int at = get_global_id(1);
  if (column >= width || at >= count) return;
  out[(size_t)position[at] * width + column] = tokens[(size_t)(at / picks) * width + column];
}
