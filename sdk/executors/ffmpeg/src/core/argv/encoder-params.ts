/**
 * The private languages inside -x264-params and its kin: `key=value` joined by `:`. Keys are on a list because each of these libraries
 * has keys that read or write files (stats, dump-yuv, cqmfile, csv, analysis-save, qpfile, film-grain tables …).
 */
import type { Problem } from './verdict.js';

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

const X264 = words(`
  profile preset tune slow-firstpass keyint min-keyint infinite-keyint no-scenecut scenecut intra-refresh bframes b-adapt b-bias b-pyramid open-gop cabac ref deblock filter slices slices-max
  slice-max-size slice-max-mbs slice-min-mbs tff bff interlaced constrained-intra pulldown fake-interlaced frame-packing qp qp-constant bitrate crf rc-lookahead vbv-maxrate vbv-bufsize vbv-init crf-max
  qpmin qpmax qpstep qp-min qp-max qp-step ratetol ipratio pbratio ip-factor pb-factor chroma-qp-offset aq-mode aq-strength aq-sensitivity mbtree qcomp cplxblur qblur zones partitions analyse direct direct-pred weightb weightp me
  merange mvrange mv-range mvrange-thread mv-range-thread subme subq psy-rd psy mixed-refs chroma-me 8x8dct trellis fast-pskip dct-decimate nr deadzone-inter deadzone-intra sar fps overscan
  videoformat range fullrange colorprim transfer colormatrix chromaloc alternative-transfer mastering-display cll nal-hrd filler pic-struct crop-rect force-cfr threads lookahead-threads sliced-threads sync-lookahead
  non-deterministic asm cpu-independent aud sps-id force-key bluray-compat avcintra-class avcintra-flavor stitchable level annexb timebase vfr-input psnr ssim log log-level verbose threads-input level-idc
  bframe-bias rc-method pass frameref keyint-min keyint-max cqm global-header repeat-headers dts-compress vbv-init i8x8dct no-deblock
`);

const X265 = words(`
  preset tune profile level-idc level high-tier no-high-tier allow-non-conformance uhd-bd ref interlace field fps input-res input-csp input-depth output-depth total-frames log-level log
  frame-threads pools numa-pools wpp pmode pme lookahead-threads lookahead-slices slices copy-pic asm ssim psnr
  keyint min-keyint open-gop scenecut scenecut-bias hist-scenecut hist-threshold scenecut-aware-qp masking-strength intra-refresh rc-lookahead gop-lookahead b-adapt bframes bframe-bias b-pyramid radl
  force-flush fades rd rd-refine ctu min-cu-size limit-refs limit-modes limit-tu rect amp early-skip rskip rskip-edge-threshold splitrd-skip fast-intra b-intra cu-lossless tskip-fast tskip rdoq-level tu-intra-depth tu-inter-depth
  nr-intra nr-inter constrained-intra strong-intra-smoothing max-merge me subme merange temporal-mvp weightp weightb analyze-src-pics hme hme-search hme-range rdpenalty max-tu-size dynamic-rd ssim-rd max-ausize-factor
  aq-mode aq-strength aq-motion hevc-aq qg-size auto-aq cutree rc-grain multi-pass-opt-rps opt-qp-pps opt-ref-list-length-pps opt-cu-delta-qp
  bitrate crf crf-max crf-min vbv-bufsize vbv-maxrate vbv-init vbv-end vbv-end-fr-adj vbv-live-multi-pass min-vbv-fullness max-vbv-fullness qp lossless ipratio pbratio qcomp qpstep qpmin qpmax rc-zones strict-cbr cbqpoffs crqpoffs cplxblur qblur const-vbv
  zones psy-rd psy-rdoq rdoq signhide deblock sao sao-non-deblock limit-sao selective-sao
  sar display-window overscan videoformat range colorprim transfer colormatrix chromaloc master-display max-cll min-luma max-luma cll hdr hdr10 hdr10-opt hdr-opt dhdr10-opt
  annexb repeat-headers aud eob eos hrd hrd-concat info hash temporal-layers vui-timing-info vui-hrd-info idr-recovery-sei single-sei lowpass-dct log2-max-poc-lsb
  pass slow-firstpass cpuid vbv frame-dup dup-threshold mcstf alpha sbrc threaded-me vui
`);

const AOM = words(`
  cpu-used usage good rt allintra end-usage cq-level min-q max-q undershoot-pct overshoot-pct buf-sz buf-initial-sz buf-optimal-sz bias-pct minsection-pct maxsection-pct kf-min-dist kf-max-dist
  tile-columns tile-rows row-mt aq-mode deltaq-mode deltalf-mode enable-qm qm-min qm-max enable-chroma-deltaq enable-cdef enable-restoration enable-tpl-model enable-keyframe-filtering arnr-maxframes arnr-strength tune tune-content
  lag-in-frames error-resilient sframe-dist sframe-mode auto-alt-ref sharpness static-thresh max-intra-rate max-inter-rate gf-cbr-boost lossless enable-rect-partitions enable-ab-partitions enable-1to4-partitions min-partition-size max-partition-size
  enable-dual-filter enable-intra-edge-filter enable-order-hint enable-tx64 enable-dist-wtd-comp enable-masked-comp enable-onesided-comp enable-interintra-comp enable-diff-wtd-comp enable-interinter-wedge enable-interintra-wedge
  enable-smooth-interintra enable-global-motion enable-warped-motion enable-obmc enable-palette enable-intrabc enable-cfl-intra enable-paeth-intra enable-smooth-intra enable-angle-delta reduced-tx-type-set reduced-reference-set enable-ref-frame-mvs
  frame-parallel noise-sensitivity denoise-noise-level denoise-block-size enable-dnl-denoising film-grain-test color-primaries transfer-characteristics matrix-coefficients chroma-sample-position color-range bit-depth superblock-size sb-size
  dynamic-resize resize-mode resize-denominator superres-mode superres-denominator target-seq-level-idx set-tier-mask min-cr loopfilter-control fwd-kf-enabled enable-fwd-kf threads tile-width max-reference-frames enable-low-complexity-decode
  gf-min-pyr-height gf-max-pyr-height max-gf-interval min-gf-interval enable-flip-idtx enable-overlay full-still-picture-hdr disable-trellis-quant quant-b-adapt vbr-corpus-complexity-lap mode-cost-upd-freq coeff-cost-upd-freq mv-cost-upd-freq
`);

const SVT_AV1 = words(`
  preset rc crf qp tbr mbr max-qp min-qp aq-mode adaptive-quantization enable-qm qm-min qm-max chroma-qm-min chroma-qm-max bias-pct undershoot-pct overshoot-pct mbr-overshoot-pct minsection-pct maxsection-pct recode-loop buf-initial-sz buf-optimal-sz buf-sz gop-constraint-rc
  keyint irefresh-type scd lookahead hierarchical-levels pred-struct enable-dg startup-mg-size tile-rows tile-columns enable-dlf enable-cdef enable-restoration enable-tpl-la enable-mfmv enable-tf enable-overlays tune scm screen-content-mode
  rmv film-grain film-grain-denoise fast-decode superres-mode superres-denom superres-kf-denom superres-qthres superres-kf-qthres sframe-dist sframe-mode resize-mode resize-denom resize-kf-denom
  lp pin ss asm level tier profile input-depth color-format color-primaries transfer-characteristics matrix-coefficients color-range chroma-sample-position mastering-display content-light enable-hdr width height fps fps-num fps-denom
  lossless pass variance-boost-strength variance-octile enable-variance-boost variance-boost-curve sharpness qp-scale-compress-strength frame-luma-bias max-32-tx-size noise-norm-strength kf-tf-strength tf-strength enable-intra-refresh
  luminance-qp-bias avif enable-force-key-frames ac-bias psy-rd extended-crf rtc low-memory
`);

const RAV1E = words(`
  speed quantizer min_quantizer bitrate key_frame_interval min_key_frame_interval keyint min-keyint reservoir_frame_delay low_latency threads tiles tile_cols tile_rows tune content_light mastering_display primaries transfer matrix range rdo_lookahead_frames
  error_resilient switch_frame_interval still_picture photon_noise enable_timing_info pixel_range level
`);

const KEYS: Readonly<Record<string, ReadonlySet<string>>> = {
  'x264-params': X264,
  x264opts: X264,
  'x265-params': X265,
  'aom-params': AOM,
  'svtav1-params': SVT_AV1,
  'rav1e-params': RAV1E,
};

/** The problem with a parameter string of one of the encoders' private options, or undefined. */
export function encoderParamsProblem(option: string, value: string): Problem | undefined {
  const keys = KEYS[option];
  if (keys === undefined)
    return { rule: 'params.unknown', message: `the parameters of -${option} are not on the list` };
  if (/['"\\\n\r\t]|\.\.|\/\//.test(value))
    return {
      rule: 'params.syntax',
      message: 'quotes, backslashes, "..", "//" and line breaks are not allowed in encoder parameters',
    };
  for (const piece of value.split(':')) {
    if (piece === '') continue;
    const equals = piece.indexOf('=');
    const key = (equals < 0 ? piece : piece.slice(0, equals)).trim();
    if (!isKnown(keys, key))
      return { rule: 'params.key', message: `"${key}" is not on the list of parameters for -${option}` };
    if (equals >= 0 && !/^[\w.,+\-()*| =@%][\w.,+\-()*| =@%/]*$|^$/.test(piece.slice(equals + 1)))
      return { rule: 'params.value', message: `the value of "${key}" may hold letters, digits and . , + - ( ) only` };
    const narrowed = narrowedProblem(key, equals < 0 ? '' : piece.slice(equals + 1));
    if (narrowed !== undefined) return narrowed;
  }
  return undefined;
}

/** A quantiser zone: first and last frame, then quantiser, bit rate factor or parameters that are numbers. */
const ZONE =
  /^\d+,\d+(,(q|b|crf|qp|bitrate|subme|me|merange|trellis|ref|deblock|psy-rd|aq-strength|aq-mode|deadzone-inter|deadzone-intra|direct|partitions|no-8x8dct|8x8dct)=[-\w.:]+)+$/;

/** Keys whose values are more than a number or a name: a matrix may be a file, a zone holds parameters of its own. */
function narrowedProblem(key: string, value: string): Problem | undefined {
  const name = key.replaceAll('_', '-').replace(/^no-?/, '').toLowerCase();
  if (name === 'cqm' && !/^(flat|jvt)?$/.test(value))
    return { rule: 'params.value', message: 'cqm takes flat or jvt; a matrix file is not read' };
  if (name === 'zones' && !value.split('/').every((zone) => ZONE.test(zone)))
    return { rule: 'params.value', message: 'zones take FIRST,LAST,q=N or FIRST,LAST,b=N, joined by "/"' };
  return undefined;
}

/** The libraries take `_` for `-` and understand `no-KEY` and `noKEY`. */
function isKnown(keys: ReadonlySet<string>, key: string): boolean {
  const dashed = key.replaceAll('_', '-');
  const candidates = [key, dashed, dashed.replace(/^no-?/, '')];
  return candidates.some((one) => keys.has(one));
}
