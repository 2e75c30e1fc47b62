// Embedded in every way nvcc knows, for fatbin_test.
__global__ void scale(float* values, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * factor + 1.0f;
}
