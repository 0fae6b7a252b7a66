// Boost.JSON and Boost.URL, compiled here once.
#include <boost/json/src.hpp>
#include <boost/url/src.hpp>
