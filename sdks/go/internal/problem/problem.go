// Package problem defines the errors that a request can fail with.
package problem

import (
	"errors"
	"fmt"
	"net/http"
)

// Code is the contract's code of a failure.
type Code string

const (
	Validation           Code = "validation_error"
	Unauthorized         Code = "unauthorized"
	Forbidden            Code = "forbidden"
	NotFound             Code = "not_found"
	MethodNotAllowed     Code = "method_not_allowed"
	Conflict             Code = "conflict"
	TooLarge             Code = "payload_too_large"
	ConfirmationRequired Code = "confirmation_required"
	Internal             Code = "internal_error"
	BadGateway           Code = "bad_gateway"
	Timeout              Code = "timeout"
)

var statuses = map[Code]int{
	Validation:           http.StatusBadRequest,
	Unauthorized:         http.StatusUnauthorized,
	Forbidden:            http.StatusForbidden,
	NotFound:             http.StatusNotFound,
	MethodNotAllowed:     http.StatusMethodNotAllowed,
	Conflict:             http.StatusConflict,
	TooLarge:             http.StatusRequestEntityTooLarge,
	ConfirmationRequired: http.StatusPreconditionRequired,
	Internal:             http.StatusInternalServerError,
	BadGateway:           http.StatusBadGateway,
	Timeout:              http.StatusGatewayTimeout,
}

// Status returns the HTTP status of the code.
func (c Code) Status() int { return statuses[c] }

// MediaType is the media type of a response whose body is a Body.
const MediaType = "application/problem+json"

// Body is the JSON form of an Error.
type Body struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Code   Code   `json:"code"`
}

// Error is a failure whose text is sent to the client unchanged.
type Error struct {
	Code   Code
	Detail string
}

func (e *Error) Error() string { return e.Detail }

// Body returns the body of the response to the failed request.
func (e *Error) Body() Body {
	status := e.Code.Status()
	return Body{status, http.StatusText(status), e.Detail, e.Code}
}

// New returns an Error of any code.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Invalid returns an Error for a request that violates the contract; the detail begins with the key.
func Invalid(format string, args ...any) *Error {
	return New(Validation, format, args...)
}

// Of returns the Error in err's chain. Any other failure is internal, and its text stays in the log.
func Of(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return New(Internal, "the daemon failed; its log says how")
}
