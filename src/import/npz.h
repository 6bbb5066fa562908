// .npz: a zip archive whose members are .npy files, stored or deflated (numpy.savez, numpy.savez_compressed). One pass,
// a piece at a time; members that nobody wants are not unpacked beyond their header.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "import/captured.h"

namespace fusediff {

// The two functions of CaptureFormat. The names come without ".npy".
Result<std::vector<CapturedTensor>> list_npz(const std::filesystem::path& file);
Status read_npz(const std::filesystem::path& file, std::span<const CapturedTensor> tensors, const SinkOf& sink_of);

}  // namespace fusediff
