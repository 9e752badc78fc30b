/*
 * Media types (RFC 9110 section 8.3.1) that may be stored and sent to a browser.
 */
#ifndef MDL_BASE_HTTP_MEDIA_TYPE_H
#define MDL_BASE_HTTP_MEDIA_TYPE_H

/** The longest media type that is accepted, in bytes. */
#define MDL_MEDIA_TYPE_MAX 127

/**
 * Whether text is a media type that a whole file can have: type/subtype with well-formed
 * parameters, ASCII, at most MDL_MEDIA_TYPE_MAX bytes, and not multipart.
 */
int mdl_media_type_valid(const char *text);

/** Whether text is a given media type, whatever its parameters. */
int mdl_media_type_is(const char *text, const char *type);

#endif
