// Zero-copy array views of Python's objects: as NumPy lays them down; through the buffer protocol; or through the table
// of functions that DLPack has frameworks leave on their tensors' type.
#ifndef HEADWORK_VIEW_H
#define HEADWORK_VIEW_H

#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>

#include "attention.h"

namespace headwork {

namespace nb = nanobind;

constexpr int unknown = -1; // no hw_type

// bfloat16 has no code in the buffer protocol: it comes as the unsigned 16-bit numbers that hold its bits.
inline int type_of(const char *format) {
    if (!format) return unknown;
    if (*format == '=' || *format == '@') ++format;
    switch (*format && !format[1] ? *format : 0) {
    case 'f': return HW_FLOAT32;
    case 'd': return HW_FLOAT64;
    case 'e': return HW_FLOAT16;
    case 'H': return HW_BFLOAT16;
    case '?': return HW_BOOL;
    default: return unknown;
    }
}

// bfloat16 is a type of another package's making, which has no number of its own.
inline int type_of(PyArrayObject *array) {
    if (!PyArray_ISNOTSWAPPED(array)) return unknown;
    switch (PyArray_TYPE(array)) {
    case NPY_FLOAT32: return HW_FLOAT32;
    case NPY_FLOAT64: return HW_FLOAT64;
    case NPY_FLOAT16: return HW_FLOAT16;
    case NPY_BOOL: return HW_BOOL;
    default: return unknown;
    }
}

// What DLPack lays down, as far as it is used here.
struct DLTensor {
    void *data;
    int32_t device_type, device_id, rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; // strides in elements
    uint64_t byte_offset;

    int type() const {
        enum { floating = 2, brain = 4, boolean = 6 };
        if (lanes != 1) return unknown;
        if (code == floating)
            return bits == 32 ? HW_FLOAT32 : bits == 64 ? HW_FLOAT64 : bits == 16 ? HW_FLOAT16 : unknown;
        return code == brain && bits == 16 ? HW_BFLOAT16 : code == boolean && bits == 8 ? HW_BOOL : unknown;
    }
};

struct DLExchange {
    uint32_t major, minor;
    void *older;
    void *allocate, *from_object, *to_object;
    int (*view)(void *object, DLTensor *out);

    // Of this type of tensors, or null. Looking it up costs more than using it, so the last one is remembered.
    static const DLExchange *of(PyTypeObject *type) {
        static PyTypeObject *known = nullptr;
        static const DLExchange *found = nullptr;
        if (type == known) return found;
        const nb::object table = nb::steal(PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__"));
        if (!table.is_valid()) {
            PyErr_Clear();
            return nullptr;
        }
        const DLExchange *const api =
            static_cast<const DLExchange *>(PyCapsule_GetPointer(table.ptr(), "dlpack_exchange_api"));
        if (!api) throw nb::python_error();
        if (api->major != 1 || !api->view) return nullptr;
        Py_INCREF((PyObject *)type); // so that no other type comes to lie there
        known = type;
        return found = api;
    }
};

class View {
  public:
    View(nb::handle object, bool writable) {
        if (object.is_none()) return;
        if (PyObject_CheckBuffer(object.ptr())) {
            if (PyObject_GetBuffer(object.ptr(), &buffer_, writable ? PyBUF_FULL : PyBUF_FULL_RO) != 0)
                throw nb::python_error();
            see_buffer();
        } else if (!see_tensor(object)) {
            throw nb::type_error("neither an array with a buffer nor a tensor on the CPU");
        }
    }
    // An array of NumPy's that somebody holds as long as it is viewed: a small call spent half its time on buffers.
    explicit View(PyArrayObject *array) {
        static_assert(sizeof(npy_intp) == sizeof(int64_t));
        there_ = true;
        data_ = PyArray_DATA(array);
        rank_ = PyArray_NDIM(array);
        shape_ = reinterpret_cast<const int64_t *>(PyArray_DIMS(array));
        strides_ = reinterpret_cast<const int64_t *>(PyArray_STRIDES(array));
        item_size_ = PyArray_ITEMSIZE(array);
        type_ = type_of(array);
    }
    // A tensor to look at; nothing is there where the object is none, or one whose memory cannot be seen.
    explicit View(nb::handle object) {
        if (object.is_none()) return;
        try {
            see_tensor(object);
        } catch (nb::python_error &) {
            there_ = false; // on no CPU, sparse, nested …: the error goes with its object
        }
    }
    View(const View &) = delete;
    View &operator=(const View &) = delete;
    ~View() {
        if (buffer_.obj) PyBuffer_Release(&buffer_);
    }

    bool there() const { return there_; }
    int rank() const { return rank_; }
    int64_t size(int from_end) const { return from_end >= 1 && from_end <= rank_ ? shape_[rank_ - from_end] : 1; }
    int64_t stride(int from_end) const { return size(from_end) == 1 ? 0 : strides_[rank_ - from_end] * unit_; }
    int known_type() const { return type_; }
    void *data() const { return data_; }
    int64_t item_size() const { return item_size_; }
    int64_t bytes() const {
        int64_t count = item_size_;
        for (int axis = 0; axis < rank_; ++axis) count *= shape_[axis];
        return count;
    }
    bool is_like(const View &other) const {
        if (type_ != other.type_ || rank_ != other.rank_) return false;
        for (int axis = 0; axis < rank_; ++axis)
            if (shape_[axis] != other.shape_[axis]) return false;
        return true;
    }
    // Whether the stretches of memory meet in which their elements lie.
    bool touches(const View &other) const {
        const Stretch mine = stretch(), theirs = other.stretch();
        return mine.from < theirs.to && theirs.from < mine.to;
    }
    // Rows of so many 64-bit numbers, one after another.
    bool is_table(int64_t columns) const {
        const int64_t row = columns * static_cast<int64_t>(sizeof(int64_t));
        return rank_ == 2 && item_size_ == sizeof(int64_t) && size(1) == columns && (size(2) < 2 || stride(2) == row) &&
               (columns < 2 || stride(1) == static_cast<int64_t>(sizeof(int64_t)));
    }

  private:
    struct Stretch {
        const char *from, *to;
    };
    Stretch stretch() const {
        Stretch all{static_cast<const char *>(data_), static_cast<const char *>(data_) + item_size_};
        for (int axis = 0; axis < rank_; ++axis) {
            if (shape_[axis] == 0) return {nullptr, nullptr};
            const int64_t last = (shape_[axis] - 1) * strides_[axis] * unit_;
            (last < 0 ? all.from : all.to) += last;
        }
        return all;
    }

    void see_buffer() {
        static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
        there_ = true;
        data_ = buffer_.buf;
        rank_ = buffer_.ndim;
        shape_ = reinterpret_cast<const int64_t *>(buffer_.shape);
        strides_ = reinterpret_cast<const int64_t *>(buffer_.strides);
        item_size_ = buffer_.itemsize;
        type_ = type_of(buffer_.format);
    }

    bool see_tensor(nb::handle object) {
        enum { cpu = 1 };
        const DLExchange *const api = DLExchange::of(Py_TYPE(object.ptr()));
        if (!api) return false;
        DLTensor tensor;
        if (api->view(object.ptr(), &tensor) != 0) throw nb::python_error();
        if (tensor.device_type != cpu || (tensor.rank > 0 && !tensor.strides)) return false;
        bool empty = false;
        for (int i = 0; i < tensor.rank; ++i) empty = empty || tensor.shape[i] == 0;
        if (!tensor.data && !empty) return false; // torch has tensors of zeros without memory
        there_ = true;
        data_ = static_cast<char *>(tensor.data) + tensor.byte_offset;
        rank_ = tensor.rank;
        shape_ = tensor.shape;
        strides_ = tensor.strides;
        unit_ = item_size_ = tensor.bits / 8;
        type_ = tensor.type();
        return true;
    }

    Py_buffer buffer_{};
    bool there_ = false;
    void *data_ = nullptr;
    int rank_ = 0;
    const int64_t *shape_ = nullptr, *strides_ = nullptr;
    int64_t unit_ = 1, item_size_ = 0; // of a stride, in bytes; of an element
    int type_ = unknown;
};

} // namespace headwork
#endif
