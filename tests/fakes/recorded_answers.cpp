// A backend that answers what lies in $ANSWERS/FOLDER.npz, arrays with the names K_TYPE, and refuses where there is none.
#include "corpus.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>

std::optional<std::vector<Tensor>> answer(const Program& program) {
    std::string name = program.folder;
    std::replace(name.begin(), name.end(), '/', '.');
    std::string path = std::string(std::getenv("ANSWERS")) + "/" + name + ".npz";
    if (!std::ifstream(path)) return std::nullopt;
    std::vector<Tensor> outputs;
    for (auto& [key, tensor] : read_npz(path)) {
        outputs.push_back(tensor);
        outputs.back().type = key.substr(key.find('_') + 1);
    }
    return outputs;
}
