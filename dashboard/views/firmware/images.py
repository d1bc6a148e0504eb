"""Images: what there is, taking one in, taking one out."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.audit import actor_of
from dashboard.errors import StatusConflict
from dashboard.firmware import preapproval
from dashboard.firmware.arrival import IntoTheStore
from dashboard.firmware.bundles import take_bundle
from dashboard.firmware.errors import ImageInUse, ImageRefused
from dashboard.firmware.fitting import fits
from dashboard.firmware.images import WRONG_SUM, remove, take
from dashboard.firmware.store import is_here
from dashboard.forms.firmware import BundleForm, ImageForm
from dashboard.forms.updates import ApprovalForm
from dashboard.models import FirmwareImage, FirmwareKey, FirmwarePart
from dashboard.models.firmware import ImageSource
from dashboard.panel_settings import current
from dashboard.sentences import Sentence
from dashboard.views.access import (
    admin_required,
    may_administer,
    may_operate,
    operator_required,
)
from dashboard.views.firmware.inventory import nodes_of


@login_required
@require_safe
def images(request: HttpRequest) -> HttpResponse:
    held = FirmwareImage.objects.select_related("signed_by")
    return render(
        request,
        "firmware/images.html",
        {
            "images": [(image, is_here(image)) for image in held],
            "may_operate": may_operate(request),
        },
    )


@login_required
@require_safe
def image_detail(request: HttpRequest, pk: int) -> HttpResponse:
    return _image(request, pk)


def _image(
    request: HttpRequest, pk: int, approval: ApprovalForm | None = None, status: int = 200
) -> HttpResponse:
    image = get_object_or_404(FirmwareImage.objects.select_related("signed_by"), pk=pk)
    here = is_here(image)
    parts = FirmwarePart.objects.filter(
        component=image.component, node__in=nodes_of(request)
    ).select_related("node")
    return render(
        request,
        "firmware/image.html",
        {
            "image": image,
            "here": here,
            "may_update": here or image.source == ImageSource.LVFS,
            "monthly": current()["firmware_automatic"],
            "approval": approval or ApprovalForm(reversible=image.reversible is True),
            "may_admin": may_administer(request),
            "brought_it": image.uploaded_by_id == request.user.pk,
            "cabinet": image.name.lower().endswith(".cab"),
            "parts": [part for part in parts if fits(image.component, image.fits, part)],
            "used": image.rollouts.exists(),
            "may_operate": may_operate(request),
        },
        status=status,
    )


@admin_required
@require_POST
def image_monthly(request: HttpRequest, pk: int) -> HttpResponse:
    """Let the monthly update use it without being asked again, or not any more."""
    image = get_object_or_404(FirmwareImage, pk=pk)
    if "withdraw" in request.POST:
        preapproval.withdraw(image, actor_of(request))
        return redirect("firmware-image", pk)
    form = ApprovalForm(request.POST, reversible=image.reversible is True)
    if not form.is_valid():
        return _image(request, pk, form, 422)
    try:
        preapproval.give(image, actor_of(request), form.cleaned_data["reason"])
    except StatusConflict as error:
        messages.error(request, str(error))
    return redirect("firmware-image", pk)


@csrf_exempt
@operator_required
@require_http_methods(["GET", "POST"])
def image_new(request: HttpRequest) -> HttpResponse:
    """The handler must be there before anything reads the body, also the check of its origin."""
    request.upload_handlers.insert(0, IntoTheStore(request))
    return _image_new(request)


@csrf_protect
def _image_new(request: HttpRequest) -> HttpResponse:
    bound = request.method == "POST"
    form = ImageForm(request.POST, request.FILES) if bound else ImageForm()
    if bound and form.is_valid():
        cleaned = form.cleaned_data
        arrival, signature = cleaned["file"].arrival, cleaned["signature"]
        try:
            image = take(arrival, form.about, cleaned["sha256"], signature, actor_of(request))
        except ImageRefused as refused:
            form.add_error(None, str(refused))
        else:
            messages.success(request, _("%(image)s is in the store.") % {"image": image})
            return redirect("firmware-image", image.pk)
    return render(
        request,
        "firmware/image_new.html",
        {"form": form, "keys": FirmwareKey.objects.count()},
        status=422 if form.errors else 200,
    )


@csrf_exempt
@operator_required
@require_http_methods(["GET", "POST"])
def bundle_new(request: HttpRequest) -> HttpResponse:
    request.upload_handlers.insert(0, IntoTheStore(request))
    return _bundle_new(request)


@csrf_protect
def _bundle_new(request: HttpRequest) -> HttpResponse:
    bound = request.method == "POST"
    form = BundleForm(request.POST, request.FILES) if bound else BundleForm()
    if bound and form.is_valid():
        try:
            count = _unpacked(request, form)
        except ImageRefused as refused:
            form.add_error(None, str(refused))
        else:
            text = ngettext(
                "%(count)s image of the bundle is new in the store.",
                "%(count)s images of the bundle are new in the store.",
                count,
            )
            messages.success(request, text % {"count": count})
            return redirect("firmware-images")
    return render(
        request, "firmware/bundle_new.html", {"form": form}, status=422 if form.errors else 200
    )


def _unpacked(request: HttpRequest, form: BundleForm) -> int:
    arrival, expected = form.cleaned_data["file"].arrival, form.cleaned_data["sha256"]
    try:
        if arrival.sha256 != expected:
            raise ImageRefused(Sentence(WRONG_SUM, found=arrival.sha256, expected=expected))
        return len(take_bundle(arrival.path, actor_of(request)))
    finally:
        arrival.discard()


@operator_required
@require_POST
def image_remove(request: HttpRequest, pk: int) -> HttpResponse:
    image = get_object_or_404(FirmwareImage, pk=pk)
    try:
        remove(image, actor_of(request))
    except ImageInUse as error:
        messages.error(request, str(error))
        return redirect("firmware-image", pk)
    messages.success(request, _("%(image)s is removed.") % {"image": image})
    return redirect("firmware-images")
