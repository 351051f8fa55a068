// BPF assembler: instructions of eBPF programs, with labels instead of distances.
//
// Used at start-up by the programs of clone/ and xdp/, so that neither needs a compiler for BPF. It
// checks nothing; the kernel checks every program when it is loaded.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace shredway::bpf {

// Helpers return r0; r1 to r5 are their arguments and are undefined after each call. r10 is the
// end of the stack.
enum Register : uint8_t { r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10 };

// Offset and width of a field.
struct Field {
  size_t at;
  uint8_t width;  // BPF_B, BPF_H, BPF_W or BPF_DW
};

// Assembles instructions; jumps refer to labels, which are set before or after.
class Assembler {
 public:
  using Label = size_t;
  Label label() {
    places_.push_back(0);
    return places_.size() - 1;
  }
  void place(Label label) { places_[label] = code_.size(); }

  void move(Register to, Register from) { add(BPF_ALU64 | BPF_MOV | BPF_X, to, from); }
  void move(Register to, int value) { add(BPF_ALU64 | BPF_MOV | BPF_K, to, r0, 0, value); }
  // operation: BPF_ADD, BPF_SUB, BPF_AND, BPF_XOR, BPF_RSH, BPF_MUL, BPF_MOD; all 64 bits wide.
  void compute(uint8_t operation, Register to, Register by) {
    add(static_cast<uint8_t>(BPF_ALU64 | operation | BPF_X), to, by);
  }
  void compute(uint8_t operation, Register to, int by) {
    add(static_cast<uint8_t>(BPF_ALU64 | operation | BPF_K), to, r0, 0, by);
  }
  // The same on the lower 32 bits; the upper ones become 0.
  void compute_u32(uint8_t operation, Register to, Register by) {
    add(static_cast<uint8_t>(BPF_ALU | operation | BPF_X), to, by);
  }
  void compute_u32(uint8_t operation, Register to, int by) {
    add(static_cast<uint8_t>(BPF_ALU | operation | BPF_K), to, r0, 0, by);
  }
  // Converts 16 or 32 bits between network and host order.
  void swap_u16(Register it) { add(BPF_ALU | BPF_END | BPF_TO_BE, it, r0, 0, 16); }
  void swap_u32(Register it) { add(BPF_ALU | BPF_END | BPF_TO_BE, it, r0, 0, 32); }
  void load(Register to, Register base, Field field) {
    add(static_cast<uint8_t>(BPF_LDX | BPF_MEM | field.width), to, base, short_of(field.at));
  }
  void store(Register base, Field field, Register from) {
    add(static_cast<uint8_t>(BPF_STX | BPF_MEM | field.width), base, from, short_of(field.at));
  }
  void jump(Label label) { jump_to(label, BPF_JMP | BPF_JA, r0, r0, 0); }
  // comparison: BPF_JEQ, BPF_JNE, BPF_JGE, BPF_JGT, BPF_JLT; unsigned.
  void jump_if(uint8_t comparison, Register left, Register right, Label label) {
    jump_to(label, static_cast<uint8_t>(BPF_JMP | comparison | BPF_X), left, right, 0);
  }
  void jump_if(uint8_t comparison, Register left, int right, Label label) {
    jump_to(label, static_cast<uint8_t>(BPF_JMP | comparison | BPF_K), left, r0, right);
  }
  void call(bpf_func_id helper) { add(BPF_JMP | BPF_CALL, r0, r0, 0, helper); }
  void leave() { add(BPF_JMP | BPF_EXIT, r0, r0); }
  // The descriptor takes two instructions; the kernel replaces it by the map's address.
  void load_map(Register to, int map_fd) {
    add(BPF_LD | BPF_DW | BPF_IMM, to, static_cast<Register>(BPF_PSEUDO_MAP_FD), 0, map_fd);
    add(0, r0, r0);
  }
  // Loads into r0 the address of the map's value for the key at `key_at` of the stack, 0 if it does
  // not exist.
  void find(int map_fd, size_t key_at) {
    load_map(r1, map_fd);
    move(r2, r10);
    compute(BPF_ADD, r2, static_cast<int>(key_at));
    call(BPF_FUNC_map_lookup_elem);
  }

  std::vector<bpf_insn> finish() {
    for (const Jump& jump : jumps_)
      code_[jump.at].off = static_cast<int16_t>(places_[jump.to] - jump.at - 1);
    return std::move(code_);
  }

 private:
  struct Jump {
    size_t at;
    Label to;
  };
  static int16_t short_of(size_t offset) { return static_cast<int16_t>(offset); }
  void add(uint8_t code, Register to, Register from, int16_t offset = 0, int value = 0) {
    bpf_insn instruction{};
    instruction.code = code;
    instruction.dst_reg = to & 0xf;
    instruction.src_reg = from & 0xf;
    instruction.off = offset;
    instruction.imm = value;
    code_.push_back(instruction);
  }
  void jump_to(Label label, uint8_t code, Register left, Register right, int value) {
    jumps_.push_back({code_.size(), label});
    add(code, left, right, 0, value);
  }

  std::vector<bpf_insn> code_;
  std::vector<size_t> places_;
  std::vector<Jump> jumps_;
};

}  // namespace shredway::bpf
