// The inputs that read_corpus.cpp gives a backend, and the backend's answer.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

struct Tensor {
    std::string type;                  // float16, bfloat16, float32, float64, int8 … int64, uint8 … uint64, bool
    std::vector<std::size_t> shape;
    std::vector<unsigned char> bytes;  // the elements in C order, little-endian
};
struct Attribute {
    std::string name, kind;            // kind: int, ints, float … and oneDNN's s64, s64s, f32, bool …
    std::vector<std::string> values;   // in the form of cases.txt
};
struct Program {
    std::string folder, id, standard, domain, name, version, opset;
    std::vector<Attribute> attributes;
    std::vector<std::optional<Tensor>> inputs;  // in the signature's order, constants too; none if omitted
    std::vector<std::string> output_types;
};

// You write this: it returns the outputs in order, or nothing to refuse.
std::optional<std::vector<Tensor>> answer(const Program& program);

std::map<std::string, Tensor> read_npz(const std::string& path);  // throws std::runtime_error, which names the file
double number(const Tensor& tensor, std::size_t place);           // an element; one of 64-bit integers rounded
std::size_t count(const Tensor& tensor);                          // of elements
